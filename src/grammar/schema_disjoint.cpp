#include <algorithm>

#include "grammar/schema_document.h"

namespace qwench {
namespace {

/// The values that "const" or "enum" leave, if one is there.
std::optional<Json> values_of(const Json& schema) {
  if (schema.contains("const")) return Json::array({schema["const"]});
  if (schema.contains("enum") && schema["enum"].is_array()) return schema["enum"];
  return std::nullopt;
}

std::set<std::string> types_with_values(const Json& schema) {
  const auto values = values_of(schema);
  std::set<std::string> types;
  if (values) {
    for (const Json& value : *values) types.insert(type_of(value));
    return types;
  }
  // Without "type" a schema takes all types, whatever its keywords speak of.
  if (!schema.contains("type")) return types_of(Json::object());
  for (const std::string& type : types_of(schema)) types.insert(type == "integer" ? "number" : type);
  return types;
}

bool requires_name(const Json& schema, const std::string& name) {
  return schema.contains("required") && schema["required"].is_array() &&
         std::find(schema["required"].begin(), schema["required"].end(), Json(name)) !=
             schema["required"].end();
}

bool forbids(const Json& schema, const std::string& name) {
  if (schema.contains("properties") && schema["properties"].is_object() &&
      schema["properties"].contains(name)) {
    const Json& property = schema["properties"][name];
    return property.is_boolean() && !property.get<bool>();
  }
  if (schema.contains("patternProperties")) return false;  // one of them may match it
  const auto closed = [&](const char* keyword) {
    return schema.contains(keyword) && schema[keyword].is_boolean() && !schema[keyword].get<bool>();
  };
  return closed("additionalProperties") || closed("unevaluatedProperties");
}

bool ranges_are_apart(const Json& a, const Json& b, const char* low, const char* high) {
  return a.contains(low) && b.contains(high) && a[low].is_number() && b[high].is_number() && a[low] > b[high];
}

}  // namespace

std::optional<Json> SchemaDocument::all_values(const Json& schema, const std::string& path, int depth) const {
  constexpr int kDeepest = 8;
  constexpr int kMost = 200;
  const Json flat = flatten(schema, path);
  if (is_false(flat)) return Json::array();
  if (!flat.is_object() || depth > kDeepest) return std::nullopt;
  Json found = Json::array();
  const auto add = [&](const Json& value) {
    if (found.size() <= kMost && !has_value(found, value) && is_valid(value, flat, path))
      found.push_back(value);
  };
  if (const auto values = valid_values(flat, path)) {
    for (const Json& value : *values) add(value);
    return found;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!flat.contains(keyword) || !flat[keyword].is_array()) continue;
    for (const Json& way : flat[keyword]) {
      const auto values = all_values(way, path, depth + 1);
      if (!values) return std::nullopt;
      for (const Json& value : *values) add(value);
    }
    return found;
  }
  if (!flat.contains("type")) return std::nullopt;
  for (const std::string& type : declared_types(flat["type"])) {
    if (type == "null") {
      add(nullptr);
    } else if (type == "boolean") {
      add(true);
      add(false);
    } else if (type == "integer") {
      const auto bound = [&](const char* keyword, const char* exclusive) -> std::optional<int64_t> {
        for (const char* one : {keyword, exclusive})
          if (flat.contains(one) && flat[one].is_number_integer()) return flat[one].get<int64_t>();
        return std::nullopt;
      };
      const auto low = bound("minimum", "exclusiveMinimum");
      const auto high = bound("maximum", "exclusiveMaximum");
      if (!low || !high || *low < -kMost * kMost || *high > kMost * kMost || *high - *low > kMost)
        return std::nullopt;
      for (int64_t value = *low; value <= *high; ++value) add(value);
    } else {
      return std::nullopt;
    }
  }
  return found;
}

namespace {

/// Of two flattened schemas, by what they say beside their alternatives.
bool are_apart(const SchemaDocument& document, const Json& a, const Json& b, const std::string& path,
               int depth) {
  const std::set<std::string> types = types_with_values(a);
  const std::set<std::string> others = types_with_values(b);
  std::set<std::string> common;
  std::set_intersection(types.begin(), types.end(), others.begin(), others.end(),
                        std::inserter(common, common.end()));
  if (common.empty()) return true;
  const auto values = values_of(a);
  const auto other_values = values_of(b);
  if (values && other_values) {
    return std::none_of(values->begin(), values->end(),
                        [&](const Json& value) { return has_value(*other_values, value); });
  }
  if (common.size() > 1) return false;
  if (common.contains("number"))
    return ranges_are_apart(a, b, "minimum", "maximum") || ranges_are_apart(b, a, "minimum", "maximum");
  if (common.contains("string"))
    return ranges_are_apart(a, b, "minLength", "maxLength") ||
           ranges_are_apart(b, a, "minLength", "maxLength");
  if (common.contains("array"))
    return ranges_are_apart(a, b, "minItems", "maxItems") || ranges_are_apart(b, a, "minItems", "maxItems");
  if (!common.contains("object")) return false;

  const auto parts = [&](const Json& x, const Json& y) {
    if (!x.contains("required") || !x["required"].is_array()) return false;
    for (const Json& name : x["required"]) {
      if (!name.is_string()) continue;
      const std::string key = name.get<std::string>();
      if (forbids(y, key)) return true;
      if (!requires_name(y, key)) continue;
      const auto property = [&](const Json& schema) {
        const bool there = schema.contains("properties") && schema["properties"].is_object() &&
                           schema["properties"].contains(key);
        return there ? schema["properties"][key] : Json(true);
      };
      if (are_disjoint(document, property(x), property(y), path, depth + 1)) return true;
    }
    return false;
  };
  return parts(a, b) || parts(b, a);
}

}  // namespace

bool are_disjoint(const SchemaDocument& document, const Json& first, const Json& second,
                  const std::string& path, int depth) {
  constexpr int kDeepest = 8;
  constexpr int kDeepestAlternatives = 4;
  if (depth > kDeepest) return false;
  const Json a = document.flatten(first, path);
  const Json b = document.flatten(second, path);
  if (is_false(a) || is_false(b)) return true;
  if (!a.is_object() || !b.is_object()) return false;
  if (are_apart(document, a, b, path, depth)) return true;
  if (depth > kDeepestAlternatives) return false;
  for (const auto& [one, other] : {std::pair{&a, &b}, {&b, &a}}) {
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (!one->contains(keyword) || !(*one)[keyword].is_array()) continue;
      Json beside = *one;
      beside.erase(keyword);
      const Json& ways = (*one)[keyword];
      return std::all_of(ways.begin(), ways.end(), [&, other = other](const Json& way) {
        return are_disjoint(document, document.merge(beside, way, path), *other, path, depth + 1);
      });
    }
  }
  return false;
}

}  // namespace qwench
