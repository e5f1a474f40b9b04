#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "grammar/lookaheads.h"
#include "grammar/number_range.h"
#include "grammar/schema_document.h"

namespace qwench {
namespace {

constexpr size_t kMostCombinations = 64;
constexpr int kMostStep = 1000;

Json intersect_types(const Json& a, const Json& b) {
  const std::set<std::string> left = declared_types(a);
  const std::set<std::string> right = declared_types(b);
  Json common = Json::array();
  for (const std::string& type : left) {
    if (right.contains(type)) {
      common.push_back(type);
    } else if ((type == "integer" && right.contains("number")) ||
               (type == "number" && right.contains("integer"))) {
      common.push_back("integer");
    }
  }
  return common;
}

constexpr std::array kLowerBounds = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"};
constexpr std::array kUpperBounds = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"};

template <size_t N>
bool is_one_of(const std::string& name, const std::array<const char*, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Names that at least one of two schemas speaks of, and neither evaluates.
Json unevaluated_names(const Json& a, const Json& b) {
  const auto is_quiet = [](const Json& schema, const std::string& name) {
    return schema.contains(kUnevaluated) && schema[kUnevaluated].contains(name);
  };
  const auto evaluates = [&](const Json& schema, const std::string& name) {
    return schema.contains("properties") && schema["properties"].contains(name) && !is_quiet(schema, name);
  };
  Json names = Json::object();
  for (const Json* one : {&a, &b}) {
    if (!one->contains(kUnevaluated)) continue;
    for (const auto& name : (*one)[kUnevaluated].items())
      if (!evaluates(a, name.key()) && !evaluates(b, name.key())) names[name.key()] = true;
  }
  return names;
}

/// A pattern of one text, as a part of another.
std::string regex_of(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("^$.|?*+()[]{}\\/-").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// What splits into several parts cannot be what none_of() says.
bool has_one_part(const std::string& pattern) {
  const std::vector<PatternPart> parts = split_lookaheads(pattern);
  return parts.size() == 1 && parts[0].holds;
}

bool has_patterns(const Json& schema) {
  return schema.contains("patternProperties") && !schema["patternProperties"].empty();
}

/// Whether the other's patterns would take names from what "additionalProperties", a schema, speaks of.
bool others_are_patterns(const Json& schema, const Json& other) {
  return schema.contains("additionalProperties") && schema["additionalProperties"].is_object() &&
         has_patterns(other) &&
         (!has_patterns(schema) || schema["patternProperties"] != other["patternProperties"]);
}

}  // namespace

Json SchemaDocument::merge(const Json& first, const Json& second, const std::string& path, int depth) const {
  spend(path);
  if (depth > kDeepestMerge) fail(path, "its $ref and allOf are nested too deeply or refer to themselves");
  if (is_true(first)) return second;
  if (is_true(second)) return first;
  if (first.is_boolean() || second.is_boolean()) return false;
  if (!first.is_object() || !second.is_object()) fail(path, "expected a schema: an object, true or false");
  if (flattens(first) || flattens(second)) {
    return merge(flatten(first, path, depth + 1), flatten(second, path, depth + 1), path, depth + 1);
  }
  for (const auto& [listed, other] : {std::pair{&first, &second}, {&second, &first}}) {
    const auto values = valid_values(*listed, path);
    if (!values) continue;
    Json common = Json::array();
    for (const Json& value : *values) {
      if (is_valid(value, *other, path)) common.push_back(value);
    }
    if (common.empty()) return false;
    return {{"enum", std::move(common)}};
  }
  if (others_are_patterns(first, second))
    return merge(with_others_as_pattern(first, path), second, path, depth + 1);
  if (others_are_patterns(second, first))
    return merge(first, with_others_as_pattern(second, path), path, depth + 1);
  Json into = first;
  into.erase(kUnevaluated);
  const Json unevaluated = unevaluated_names(first, second);
  if (!unevaluated.empty()) into[kUnevaluated] = unevaluated;
  if (second.contains(kUnclear)) into[kUnclear] = true;
  merge_patterns(into, second, path, depth);
  merge_objects(into, second, path, depth);
  merge_items(into, second, path, depth);
  constexpr std::array kDone = {"properties",  "additionalProperties", "items",
                                "prefixItems", "patternProperties",    "propertyNames"};
  for (const auto& [keyword, value] : second.items()) {
    if (is_annotation(keyword) || is_one_of(keyword, kDone)) continue;
    if (!into.contains(keyword)) {
      into[keyword] = value;
    } else if (into[keyword] != value) {
      merge_keyword(into, keyword, value, path, depth);
      if (into.is_boolean()) return into;
    }
  }
  return into;
}

/// "additionalProperties" as one of "patternProperties", of the names that are neither declared nor of
/// another.
Json SchemaDocument::with_others_as_pattern(Json schema, const std::string& path) const {
  std::vector<std::string> taken;
  if (schema.contains("properties") && !schema["properties"].empty()) {
    std::string names;
    for (const auto& property : schema["properties"].items())
      names += (names.empty() ? "^(?:" : "|") + regex_of(property.key());
    taken.push_back(names + ")$");
  }
  if (schema.contains("patternProperties")) {
    for (const auto& other : schema["patternProperties"].items()) {
      if (!has_one_part(other.key())) {
        fail(path,
             "additionalProperties: joining it with another schema's patternProperties is not supported "
             "where its own begin with lookaheads");
      }
      taken.push_back(other.key());
    }
  }
  const Json others = schema["additionalProperties"];
  schema.erase("additionalProperties");
  schema["patternProperties"][none_of(taken)] = others;
  return schema;
}

/// What two different values of a keyword say together; `into` becomes false where that is nothing.
void SchemaDocument::merge_keyword(Json& into, const std::string& keyword, const Json& value,
                                   const std::string& path, int depth) const {
  Json& known = into[keyword];
  const bool lists = known.is_array() && value.is_array();
  const bool numbers = known.is_number() && value.is_number();
  if (keyword == "type") {
    known = intersect_types(known, value);
    if (known.empty()) into = false;
  } else if (is_one_of(keyword, kLowerBounds) && numbers) {
    if (compare(*Decimal::of(value), *Decimal::of(known)) > 0) known = value;
  } else if (is_one_of(keyword, kUpperBounds) && numbers) {
    if (compare(*Decimal::of(value), *Decimal::of(known)) < 0) known = value;
  } else if (keyword == "multipleOf" && known.is_number_unsigned() && value.is_number_unsigned() &&
             known > 0 && value > 0 && known <= kMostStep && value <= kMostStep) {
    known = std::lcm(known.get<uint64_t>(), value.get<uint64_t>());
  } else if (keyword == "uniqueItems") {
    known = true;
  } else if (keyword == "required" && lists) {
    for (const Json& name : value) {
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  } else if (keyword == kAlso) {
    for (const Json& one : value) known.push_back(one);
  } else if (keyword == "pattern" || keyword == "format") {
    into[kAlso].push_back({{keyword, value}});
  } else if (keyword == "anyOf" && lists && known.size() * value.size() <= kMostCombinations) {
    Json both = Json::array();
    for (const Json& a : known) {
      for (const Json& b : value) both.push_back(merge(a, b, path, depth + 1));
    }
    known = std::move(both);
  } else if (keyword == "oneOf" && lists && known.size() * value.size() <= kMostCombinations) {
    Json both = Json::array();
    for (const Json& a : exclusive(known, known, path, depth)) {
      for (const Json& b : exclusive(value, value, path, depth)) both.push_back(merge(a, b, path, depth + 1));
    }
    into.erase("oneOf");
    into = merge(into, {{"anyOf", std::move(both)}}, path, depth + 1);
  } else {
    fail(path, fmt::format("{}: two different ones apply to the same value (by allOf, $ref, anyOf or "
                           "oneOf), which is not supported",
                           keyword));
  }
}

/// Patterns of names, and names altogether. Joined first: what is declared on one side may match them.
void SchemaDocument::merge_patterns(Json& into, const Json& b, const std::string& path, int depth) const {
  const auto patterns = [](const Json& schema) {
    return schema.contains("patternProperties") ? schema["patternProperties"] : Json::object();
  };
  // The other's patterns would open what "additionalProperties" closes: where it is false, the names say it.
  const auto close_names = [&](const Json& schema, const Json& other) -> std::optional<Json> {
    if (!schema.contains("additionalProperties") || !is_false(schema["additionalProperties"]) ||
        patterns(other).empty())
      return std::nullopt;
    Json declared = Json::array();
    if (schema.contains("properties")) {
      for (const auto& property : schema["properties"].items()) declared.push_back(property.key());
    }
    Json ways = Json::array({{{"enum", std::move(declared)}}});
    const Json own = patterns(schema);
    for (const auto& pattern : own.items()) ways.push_back({{"pattern", pattern.key()}});
    return Json{{"anyOf", std::move(ways)}};
  };
  if (patterns(into) != patterns(b)) {
    const auto names = close_names(into, b);
    const auto other_names = close_names(b, into);
    for (const auto& one : {names, other_names}) {
      if (!one) continue;
      into["propertyNames"] =
          into.contains("propertyNames") ? merge(into["propertyNames"], *one, path, depth + 1) : *one;
    }
  }
  for (const char* keyword : {"patternProperties", "propertyNames"}) {
    if (!b.contains(keyword)) continue;
    if (!into.contains(keyword)) {
      into[keyword] = b[keyword];
    } else if (keyword == std::string_view("propertyNames")) {
      into[keyword] = merge(into[keyword], b[keyword], path, depth + 1);
    } else {
      for (const auto& [pattern, schema] : b[keyword].items()) {
        Json& known = into[keyword];
        known[pattern] = known.contains(pattern) ? merge(known[pattern], schema, path, depth + 1) : schema;
      }
    }
  }
}

void SchemaDocument::merge_objects(Json& into, const Json& b, const std::string& path, int depth) const {
  const char* const keyword = "additionalProperties";
  {
    const auto others = [&](const Json& from, const Json& to) {
      Json found = Json::object();
      if (!to.contains("properties") || !to["properties"].is_object()) return found;
      for (const auto& property : to["properties"].items()) {
        const std::string& name = property.key();
        const Json& schema = property.value();
        if (!from.contains(keyword) || (from.contains("properties") && from["properties"].contains(name)))
          continue;
        if (from.contains("patternProperties") && from["patternProperties"].is_object()) {
          const Json& patterns = from["patternProperties"];
          const auto items = patterns.items();
          if (std::any_of(items.begin(), items.end(),
                          [&](const auto& one) { return matches(one.key(), name, path); }))
            continue;
        }
        found[name] = merge(schema, from[keyword], path, depth + 1);
      }
      return found;
    };
    const Json of_into = others(b, into);
    const Json of_b = others(into, b);
    for (const auto& [name, schema] : of_into.items()) into["properties"][name] = schema;
    if (b.contains("properties") && b["properties"].is_object()) {
      for (const auto& [name, schema] : b["properties"].items()) {
        Json& properties = into["properties"];
        const Json& own = of_b.contains(name) ? of_b[name] : schema;
        properties[name] = properties.contains(name) ? merge(properties[name], own, path, depth + 1) : own;
      }
    }
    if (b.contains(keyword))
      into[keyword] = into.contains(keyword) ? merge(into[keyword], b[keyword], path, depth + 1) : b[keyword];
  }
}

void SchemaDocument::merge_items(Json& into, const Json& b, const std::string& path, int depth) const {
  if (into.contains("prefixItems") || b.contains("prefixItems")) {
    const auto list_of = [&](const Json& schema) {
      if (!schema.contains("prefixItems")) return Json(Json::array());
      if (!schema["prefixItems"].is_array()) fail(path, "prefixItems: expected an array of schemas");
      return schema["prefixItems"];
    };
    const auto item = [](const Json& schema, const Json& list, size_t i) {
      if (i < list.size()) return list[i];
      return schema.contains("items") ? schema["items"] : Json(true);
    };
    const Json own = list_of(into);
    const Json other = list_of(b);
    Json joined = Json::array();
    for (size_t i = 0; i < std::max(own.size(), other.size()); ++i)
      joined.push_back(merge(item(into, own, i), item(b, other, i), path, depth + 1));
    into["prefixItems"] = std::move(joined);
  }
  if (b.contains("items"))
    into["items"] = into.contains("items") ? merge(into["items"], b["items"], path, depth + 1) : b["items"];
}

}  // namespace qwench
