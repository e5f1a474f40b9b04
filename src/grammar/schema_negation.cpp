#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema_document.h"

namespace qwench {
namespace {

constexpr int kMostNegatedStep = 1000;
const char* const kTypes[] = {"array", "boolean", "null", "number", "object", "string"};

Json beside(const char* type, Json assertion) {
  return {{"type", type}, {kAlso, Json::array({std::move(assertion)})}};
}

Json any_of(Json ways) {
  if (ways.empty()) return false;
  if (ways.size() == 1) return ways[0];
  return {{"anyOf", std::move(ways)}};
}

/// A bound on a count, and what breaks it.
struct Count {
  const char* keyword;
  const char* type;
  const char* opposite;
  int step;
};
constexpr Count kCounts[] = {
    {"minLength", "string", "maxLength", -1},
    {"maxLength", "string", "minLength", 1},
    {"minItems", "array", "maxItems", -1},
    {"maxItems", "array", "minItems", 1},
    {"minProperties", "object", "maxProperties", -1},
    {"maxProperties", "object", "minProperties", 1},
};
constexpr std::pair<const char*, const char*> kBounds[] = {
    {"minimum", "exclusiveMaximum"},
    {"maximum", "exclusiveMinimum"},
    {"exclusiveMinimum", "maximum"},
    {"exclusiveMaximum", "minimum"},
};

/// What is none of `values`.
bool add_other_values(const Json& values, Json& ways) {
  Json free = Json::array();
  for (const char* type : kTypes) {
    Json of_type = Json::array();
    for (const Json& value : values) {
      if (type == std::string_view(type_of(value))) of_type.push_back(value);
    }
    const std::string_view name = type;
    if (of_type.empty()) {
      free.push_back(type);
    } else if (name == "string" || name == "number") {
      ways.push_back(beside(type, {{"not", {{"enum", of_type}}}}));
    } else if (name == "boolean") {
      const bool both = std::find(of_type.begin(), of_type.end(), !of_type[0].get<bool>()) != of_type.end();
      if (!both) ways.push_back({{"const", !of_type[0].get<bool>()}});
    } else if (name != "null") {
      return false;
    }
  }
  if (!free.empty()) ways.push_back({{"type", free}});
  return true;
}

/// What "not" says evaluates nothing: the names that it speaks of, and what else is not known.
Json silenced(Json schema) {
  if (!schema.is_object()) return schema;
  if (schema.contains("anyOf") && schema["anyOf"].is_array()) {
    for (Json& way : schema["anyOf"]) way = silenced(std::move(way));
  }
  if (schema.contains("properties") && schema["properties"].is_object()) {
    Json names = Json::object();
    for (const auto& property : schema["properties"].items()) names[property.key()] = true;
    if (!names.empty()) schema[kUnevaluated] = std::move(names);
  }
  const auto has = [&](const char* keyword) { return schema.contains(keyword); };
  constexpr const char* kOthers[] = {
      "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "oneOf"};
  if (SchemaDocument::flattens(schema) || std::any_of(std::begin(kOthers), std::end(kOthers), has))
    schema[kUnclear] = true;
  return schema;
}

}  // namespace

const char* type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_string()) return "string";
  if (value.is_number()) return "number";
  return value.is_object() ? "object" : "array";
}

/// By De Morgan: what breaks one keyword or another. A keyword speaks of one type alone, so that only values
/// of that type can break it.
Json SchemaDocument::negate(const Json& schema, const std::string& path, int depth) const {
  spend(path);
  if (schema.is_object() && schema.size() == 1 && schema.contains("not"))
    return silenced(flatten(schema["not"], path, depth + 1));
  const Json flat = flatten(schema, path, depth + 1);
  if (flat.is_boolean()) return !flat.get<bool>();
  if (!flat.is_object()) fail(path, "expected a schema: an object, true or false");
  Json ways = Json::array();
  for (const auto& [keyword, value] : flat.items()) {
    if (!is_annotation(keyword)) add_breaks(flat, keyword, value, ways, path, depth + 1);
  }
  return silenced(any_of(std::move(ways)));
}

/// What is valid under `base` but not under `schema`: a type that `base` demands as well cannot be broken.
Json SchemaDocument::without(const Json& base, const Json& schema, const std::string& path, int depth) const {
  if (const auto values = valid_values(base, path)) {
    Json left = Json::array();
    for (const Json& value : *values) {
      if (!is_valid(value, schema, path)) left.push_back(value);
    }
    if (left.empty()) return false;
    return {{"enum", std::move(left)}};
  }
  Json flat = flatten(schema, path, depth + 1);
  if (flat.is_object() && flat.contains("type") && base.is_object() && base.contains("type")) {
    const std::set<std::string> taken = declared_types(flat["type"]);
    const std::set<std::string> demanded = declared_types(base["type"]);
    const auto is_taken = [&](const std::string& type) {
      return taken.contains(type) || (type == "integer" && taken.contains("number"));
    };
    if (std::all_of(demanded.begin(), demanded.end(), is_taken)) flat.erase("type");
  }
  return merge(base, negate(flat, path, depth + 1), path, depth + 1);
}

void SchemaDocument::add_breaks(const Json& schema, const std::string& keyword, const Json& value, Json& ways,
                                const std::string& path, int depth) const {
  const auto refuse = [&] {
    fail(path, fmt::format("what does not fit the keyword \"{}\" (by not, if, oneOf or maxContains) is not "
                           "supported",
                           keyword));
  };
  for (const Count& count : kCounts) {
    if (keyword != count.keyword) continue;
    if (!value.is_number_integer()) refuse();
    const int64_t opposite = value.get<int64_t>() + count.step;
    if (opposite >= 0) ways.push_back({{"type", count.type}, {count.opposite, opposite}});
    return;
  }
  for (const auto& [bound, opposite] : kBounds) {
    if (keyword != bound) continue;
    ways.push_back({{"type", "number"}, {opposite, value}});
    return;
  }
  if (keyword == "type") {
    const std::set<std::string> taken = types_of(schema);
    const bool only_integers = taken.contains("integer") && !taken.contains("number");
    if (only_integers) ways.push_back(beside("number", {{"not", {{"type", "integer"}}}}));
    Json others = Json::array();
    for (const char* type : kTypes) {
      if (!taken.contains(type) && !(only_integers && type == std::string_view("number")))
        others.push_back(type);
    }
    if (!others.empty()) ways.push_back({{"type", others}});
  } else if (keyword == "enum" || keyword == "const") {
    const Json values = keyword == "const" ? Json::array({value}) : value;
    if (!values.is_array() || !add_other_values(values, ways)) refuse();
  } else if (keyword == "pattern") {
    ways.push_back(beside("string", {{"not", {{"pattern", value}}}}));
  } else if (keyword == "multipleOf" && value.is_number_integer() && value > 0 && value <= kMostNegatedStep) {
    ways.push_back(beside("number", {{"not", {{"multipleOf", value}}}}));
  } else if (keyword == "prefixItems") {
    if (!value.is_array()) refuse();
    Json before = Json::array();
    for (const Json& item : value) {
      Json broken = negate(item, path, depth);
      Json list = before;
      list.push_back(broken);
      if (!is_false(broken))
        ways.push_back({{"type", "array"}, {"minItems", list.size()}, {"prefixItems", list}});
      before.push_back(true);
    }
  } else if (keyword == kAlso) {
    for (const Json& one : value) {
      if (one.contains("pattern")) {
        ways.push_back(beside("string", {{"not", one}}));
      } else if (one.contains("not") && one["not"].contains("pattern")) {
        ways.push_back({{"type", "string"}, {"pattern", one["not"]["pattern"]}});
      } else if (one.contains("not") && !one["not"].contains("format")) {
        ways.push_back(one["not"]);
      } else {
        refuse();
      }
    }
  } else if (keyword == "required") {
    if (!value.is_array()) refuse();
    for (const Json& name : value) {
      if (!name.is_string()) refuse();
      ways.push_back({{"type", "object"}, {"properties", {{name.get<std::string>(), false}}}});
    }
  } else if (keyword == "properties") {
    if (!value.is_object()) refuse();
    for (const auto& [name, property] : value.items()) {
      Json broken = negate(property, path, depth);
      if (is_false(broken)) continue;
      ways.push_back({{"type", "object"},
                      {"required", Json::array({name})},
                      {"properties", {{name, std::move(broken)}}}});
    }
  } else if (keyword == "items" && !schema.contains("prefixItems")) {
    Json broken = negate(value, path, depth);
    if (!is_false(broken)) ways.push_back({{"type", "array"}, {"contains", std::move(broken)}});
  } else if (keyword == "contains" && !schema.contains("minContains") && !schema.contains("maxContains")) {
    ways.push_back({{"type", "array"}, {"items", negate(value, path, depth)}});
  } else if (keyword == "anyOf") {
    Json all = true;
    if (!value.is_array()) refuse();
    for (const Json& branch : value) all = merge(all, negate(branch, path, depth), path, depth);
    if (!is_false(all)) ways.push_back(std::move(all));
  } else {
    const bool says_nothing =
        (keyword == "uniqueItems" ? is_false(value) : is_true(value)) || (value.is_object() && value.empty());
    if (!says_nothing) refuse();
  }
}

Json SchemaDocument::apply_conditions(Json schema, const std::string& path, int depth) const {
  const auto take = [&](const char* keyword) -> std::optional<Json> {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return std::nullopt;
    Json value = *found;
    schema.erase(found);
    return value;
  };
  const auto negated = take("not");
  const auto condition = take("if");
  const auto then = take("then");
  const auto otherwise = take("else");
  std::vector<std::pair<std::string, Json>> dependent;
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    const auto names = take(keyword);
    if (!names) continue;
    if (!names->is_object()) fail(path, fmt::format("{}: expected an object", keyword));
    const std::string_view kind = keyword;
    for (const auto& [name, needed] : names->items()) {
      const bool listed = needed.is_array() && std::all_of(needed.begin(), needed.end(),
                                                           [](const Json& one) { return one.is_string(); });
      const bool is_schema = needed.is_object() || needed.is_boolean();
      if (kind == "dependentRequired"  ? !listed
          : kind == "dependentSchemas" ? !is_schema
                                       : !listed && !is_schema) {
        fail(path, fmt::format("{}: found {} for \"{}\", expected {}", keyword, needed.dump(), name,
                               kind == "dependentRequired"  ? "an array of names"
                               : kind == "dependentSchemas" ? "a schema: an object, true or false"
                                                            : "an array of names or a schema"));
      }
      dependent.emplace_back(name, needed.is_array() ? Json{{"required", needed}} : needed);
    }
  }
  if (negated) schema = without(schema, *negated, path + "/not", depth + 1);
  if (!schema.is_object()) return schema;
  if (condition && (then || otherwise)) {
    Json ways = Json::array();
    for (const bool holds : {true, false}) {
      const std::string place = path + "/if";
      const Json fits =
          holds ? merge(schema, *condition, place, depth + 1) : without(schema, *condition, place, depth + 1);
      Json way = merge(fits, (holds ? then : otherwise).value_or(true), path, depth + 1);
      if (!is_false(way)) ways.push_back(std::move(way));
    }
    schema = any_of(std::move(ways));
    if (!schema.is_object()) return schema;
  }
  for (const auto& [name, needed] : dependent) {
    const Json absent{{"properties", {{name, false}}}};
    const Json present = merge({{"required", Json::array({name})}}, needed, path, depth + 1);
    schema = merge(schema, {{"anyOf", Json::array({present, absent})}}, path, depth + 1);
    if (!schema.is_object()) return schema;
  }
  return schema;
}

std::vector<Json> SchemaDocument::exclusive(const std::vector<Json>& branches, const Json& alternatives,
                                            const std::string& path, int depth) const {
  constexpr size_t kMostBranches = 500;
  if (branches.size() > kMostBranches)
    fail(path, fmt::format("it has more than {} alternatives", kMostBranches));
  std::vector<Json> apart = branches;
  std::vector<Json> flat;
  for (const Json& branch : branches) flat.push_back(flatten(branch, path, depth + 1));
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t j = 0; j < branches.size(); ++j) {
      if (i == j || are_disjoint(*this, flat[i], flat[j], path)) continue;
      apart[i] = without(apart[i], alternatives[j], path, depth + 1);
    }
  }
  return apart;
}

}  // namespace qwench
