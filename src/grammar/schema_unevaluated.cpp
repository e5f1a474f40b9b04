#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema_document.h"
#include "qwench/error.h"

namespace qwench {
namespace {

bool may_be(const Json& schema, const char* type) {
  return !schema.contains("type") || declared_types(schema["type"]).contains(type);
}

}  // namespace

Json with_prefix_items(Json schema) {
  if (schema.contains("items") && schema["items"].is_array() && !schema.contains("prefixItems")) {
    schema["prefixItems"] = schema["items"];
    schema.erase("items");
    if (schema.contains("additionalItems")) schema["items"] = schema["additionalItems"];
  }
  return schema;
}

std::vector<Json> SchemaDocument::alternatives(const Json& schema, const char* keyword,
                                               const std::string& path, int depth) const {
  const Json& list = schema[keyword];
  if (!list.is_array() || list.empty())
    fail(path, fmt::format("{}: expected an array of schemas, not empty", keyword));
  Json base = schema;
  base.erase(keyword);
  const bool alone = !has_assertions(base) && !base.contains(kUnevaluated);
  std::vector<Json> branches;
  for (size_t i = 0; i < list.size(); ++i) {
    branches.push_back(alone ? list[i]
                             : merge(base, list[i], fmt::format("{}/{}/{}", path, keyword, i), depth + 1));
  }
  if (std::string_view(keyword) != "oneOf") return branches;
  try {
    return exclusive(branches, list, path, depth + 1);
  } catch (const Error& error) {
    fail(path,
         fmt::format("oneOf: it is not evident that no value is valid under two of its alternatives; give "
                     "them different types, or a required property with different const values, or use "
                     "anyOf ({})",
                     error.what()));
  }
}

/// A flattened schema with what "unevaluatedProperties" and "unevaluatedItems" of `schema`, which it was
/// flattened from, say of the rest: for each alternative, which evaluates what it declares.
Json SchemaDocument::close(const Json& flat, const Json& schema, const std::string& path, int depth) const {
  spend(path);
  if (depth > kDeepestMerge) fail(path, "its alternatives are nested too deeply");
  if (!flat.is_object()) return flat;
  if (const auto listed = valid_values(flat, path)) {
    Json values = Json::array();
    for (const Json& value : *listed) {
      if (is_valid(value, schema, path)) values.push_back(value);
    }
    return {{"enum", std::move(values)}};
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!flat.contains(keyword)) continue;
    Json ways = Json::array();
    for (const Json& way : alternatives(flat, keyword, path, depth)) {
      Json closed = close(flatten(way, path, depth + 1), schema, path, depth + 1);
      if (!is_false(closed)) ways.push_back(std::move(closed));
    }
    if (ways.empty()) return false;
    return {{"anyOf", std::move(ways)}};
  }
  Json closed = with_prefix_items(flat);
  const auto check_clear = [&](const char* keyword) {
    if (flat.contains(kUnclear)) {
      fail(path, fmt::format("{}: beside \"not\", \"if\" or \"oneOf\" that speaks of items or of patterns of "
                             "names it is not supported",
                             keyword));
    }
  };
  if (schema.contains("unevaluatedProperties") && may_be(flat, "object")) {
    if (!flat.contains("additionalProperties")) check_clear("unevaluatedProperties");
    close_properties(closed, schema["unevaluatedProperties"], path, depth);
  }
  if (schema.contains("unevaluatedItems") && may_be(flat, "array")) {
    if (!closed.contains("items")) {
      check_clear("unevaluatedItems");
      const Json& rest = schema["unevaluatedItems"];
      const bool hits = closed.contains("contains") && !is_true(rest);
      closed["items"] = hits ? Json{{"anyOf", Json::array({closed["contains"], rest})}} : rest;
    }
  }
  return closed;
}

void SchemaDocument::close_properties(Json& flat, const Json& rest, const std::string& path,
                                      int depth) const {
  const Json quiet = flat.contains(kUnevaluated) ? flat[kUnevaluated] : Json::object();
  flat.erase(kUnevaluated);
  if (flat.contains("additionalProperties")) return;
  for (const auto& one : quiet.items()) {
    const std::string& name = one.key();
    const Json patterns = flat.contains("patternProperties") ? flat["patternProperties"] : Json::object();
    const auto items = patterns.items();
    const bool evaluated = std::any_of(
        items.begin(), items.end(), [&](const auto& pattern) { return matches(pattern.key(), name, path); });
    Json& property = flat["properties"][name];
    if (!evaluated) property = merge(property, rest, path, depth + 1);
  }
  flat["additionalProperties"] = rest;
}

}  // namespace qwench
