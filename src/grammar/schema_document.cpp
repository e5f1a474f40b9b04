#include "grammar/schema_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ascii.h"

namespace qwench {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMostCombinations = 64;

/// A token of a JSON pointer in a URI's fragment.
std::string decode_token(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '%' && i + 2 < token.size() && hex_digit(token[i + 1]) >= 0 &&
        hex_digit(token[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(token[i + 1]) * 16 + hex_digit(token[i + 2]));
      i += 2;
    } else if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      out += token[++i] == '0' ? '~' : '/';
    } else {
      out += token[i];
    }
  }
  return out;
}

std::set<std::string> declared_types(const Json& type) {
  std::set<std::string> types;
  if (type.is_string()) types.insert(type.get<std::string>());
  if (type.is_array()) {
    for (const Json& one : type) {
      if (one.is_string()) types.insert(one.get<std::string>());
    }
  }
  return types;
}

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

}  // namespace

bool is_annotation(const std::string& keyword) {
  static const std::set<std::string> annotations = {"title",
                                                    "description",
                                                    "default",
                                                    "examples",
                                                    "example",
                                                    "$schema",
                                                    "$id",
                                                    "id",
                                                    "$comment",
                                                    "$anchor",
                                                    "$defs",
                                                    "definitions",
                                                    "deprecated",
                                                    "readOnly",
                                                    "writeOnly",
                                                    "contentEncoding",
                                                    "contentMediaType",
                                                    "contentSchema",
                                                    "$vocabulary",
                                                    "nullable",
                                                    "discriminator",
                                                    "xml",
                                                    "externalDocs"};
  return annotations.contains(keyword) || keyword.starts_with("x-");
}

bool has_assertions(const Json& schema) {
  if (!schema.is_object()) return !(schema.is_boolean() && schema.get<bool>());
  for (const auto& [keyword, value] : schema.items()) {
    if (!is_annotation(keyword)) return true;
  }
  return false;
}

std::set<std::string> types_of(const Json& schema) {
  static const std::set<std::string> all = {"null", "boolean", "object", "array", "number", "string"};
  if (!schema.is_object()) return all;
  if (schema.contains("type")) return declared_types(schema["type"]);
  constexpr std::array<std::pair<const char*, const char*>, 19> kSpeakOf = {{
      {"properties", "object"},    {"required", "object"},         {"additionalProperties", "object"},
      {"minProperties", "object"}, {"maxProperties", "object"},    {"unevaluatedProperties", "object"},
      {"items", "array"},          {"prefixItems", "array"},       {"minItems", "array"},
      {"maxItems", "array"},       {"minLength", "string"},        {"maxLength", "string"},
      {"pattern", "string"},       {"format", "string"},           {"minimum", "number"},
      {"maximum", "number"},       {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"},
      {"multipleOf", "number"},
  }};
  std::set<std::string> types;
  for (const auto& [keyword, type] : kSpeakOf) {
    if (schema.contains(keyword)) types.insert(type);
  }
  return types.empty() ? all : types;
}

void SchemaDocument::fail(const std::string& path, const std::string& sentence) const {
  builder_.fail(fmt::format("{}: {}", path, sentence));
}

const Json& SchemaDocument::resolve(const std::string& ref, const std::string& path) const {
  std::string_view fragment = ref;
  if (root_.is_object() && root_.contains("$id") && root_["$id"].is_string()) {
    const std::string& id = root_["$id"].get_ref<const std::string&>();
    if (fragment.starts_with(id)) fragment.remove_prefix(id.size());
    if (fragment.empty()) return root_;
  }
  if (!fragment.starts_with('#') || (fragment.size() > 1 && fragment[1] != '/')) {
    fail(path, fmt::format("$ref \"{}\" is not supported: only places of the same schema are, such as "
                           "\"#/$defs/name\"",
                           ref));
  }
  fragment.remove_prefix(1);
  const Json* at = &root_;
  while (!fragment.empty()) {
    fragment.remove_prefix(1);
    const size_t end = std::min(fragment.find('/'), fragment.size());
    const std::string token = decode_token(fragment.substr(0, end));
    fragment.remove_prefix(end);
    const Json* next = nullptr;
    if (at->is_object()) {
      const auto found = at->find(token);
      if (found != at->end()) next = &*found;
    } else if (at->is_array() && !token.empty() && token.size() < 7 &&
               token.find_first_not_of("0123456789") == std::string::npos) {
      const size_t index = std::stoul(token);
      if (index < at->size()) next = &(*at)[index];
    }
    if (next == nullptr) fail(path, fmt::format("$ref \"{}\" names nothing in the schema", ref));
    at = next;
  }
  return *at;
}

void SchemaDocument::spend(const std::string& path) const {
  constexpr int kMostMerges = 5000;
  if (++spent_ > kMostMerges) fail(path, "it joins too many schemas by $ref, allOf, anyOf and oneOf");
}

Json SchemaDocument::flatten(const Json& schema, const std::string& path, int depth) const {
  spend(path);
  if (depth > kDeepest) fail(path, "its $ref and allOf are nested too deeply or refer to themselves");
  if (!schema.is_object() || (!schema.contains("$ref") && !schema.contains("allOf"))) return schema;
  Json flat = Json::object();
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword != "$ref" && keyword != "allOf") flat[keyword] = value;
  }
  if (schema.contains("$ref")) {
    if (!schema["$ref"].is_string()) fail(path, "$ref: expected a string");
    const std::string ref = schema["$ref"].get<std::string>();
    flat = merge(flat, flatten(resolve(ref, path), ref, depth + 1), path, depth + 1);
  }
  if (schema.contains("allOf")) {
    if (!schema["allOf"].is_array()) fail(path, "allOf: expected an array of schemas");
    size_t index = 0;
    for (const Json& part : schema["allOf"])
      flat =
          merge(flat, flatten(part, fmt::format("{}/allOf/{}", path, index++), depth + 1), path, depth + 1);
  }
  return flat;
}

Json SchemaDocument::merge(const Json& first, const Json& second, const std::string& path, int depth) const {
  spend(path);
  if (depth > kDeepest) fail(path, "its $ref and allOf are nested too deeply or refer to themselves");
  const auto is_true = [](const Json& schema) { return schema.is_boolean() && schema.get<bool>(); };
  if (is_true(first)) return second;
  if (is_true(second)) return first;
  if (first.is_boolean() || second.is_boolean()) return false;
  if (!first.is_object() || !second.is_object()) fail(path, "expected a schema: an object, true or false");
  if (first.contains("$ref") || first.contains("allOf") || second.contains("$ref") ||
      second.contains("allOf")) {
    return merge(flatten(first, path, depth + 1), flatten(second, path, depth + 1), path, depth + 1);
  }
  Json into = first;
  merge_objects(into, second, path, depth);
  merge_items(into, second, path, depth);
  for (const auto& [keyword, value] : second.items()) {
    if (is_annotation(keyword)) continue;
    if (keyword == "properties" || keyword == "additionalProperties" || keyword == "unevaluatedProperties" ||
        keyword == "items" || keyword == "prefixItems")
      continue;
    if (!into.contains(keyword)) {
      into[keyword] = value;
      continue;
    }
    Json& known = into[keyword];
    if (known == value) continue;
    if (keyword == "type") {
      known = intersect_types(known, value);
      if (known.empty()) return false;
    } else if (keyword == "enum" && known.is_array() && value.is_array()) {
      Json common = Json::array();
      for (const Json& one : known) {
        if (std::find(value.begin(), value.end(), one) != value.end()) common.push_back(one);
      }
      known = std::move(common);
    } else if (keyword == "const") {
      return false;
    } else if (is_one_of(keyword, kLowerBounds) && known.is_number() && value.is_number()) {
      if (value > known) known = value;
    } else if (is_one_of(keyword, kUpperBounds) && known.is_number() && value.is_number()) {
      if (value < known) known = value;
    } else if (keyword == "required" && known.is_array() && value.is_array()) {
      for (const Json& name : value) {
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      }
    } else if (keyword == "anyOf" && known.is_array() && value.is_array() &&
               known.size() * value.size() <= kMostCombinations) {
      Json both = Json::array();
      for (const Json& a : known) {
        for (const Json& b : value) both.push_back(merge(a, b, path, depth + 1));
      }
      known = std::move(both);
    } else {
      fail(path, fmt::format("{}: two different ones apply to the same value (by allOf, $ref, anyOf or "
                             "oneOf), which is not supported",
                             keyword));
    }
  }
  return into;
}

void SchemaDocument::merge_objects(Json& into, const Json& b, const std::string& path, int depth) const {
  for (const char* keyword : {"additionalProperties", "unevaluatedProperties"}) {
    const auto others = [&](const Json& from, const Json& to) {
      Json found = Json::object();
      if (!to.contains("properties") || !to["properties"].is_object()) return found;
      for (const auto& [name, schema] : to["properties"].items()) {
        if (!from.contains(keyword) || (from.contains("properties") && from["properties"].contains(name)))
          continue;
        // What unevaluatedProperties of one side speaks of, the other has evaluated.
        if (std::string_view(keyword) == "additionalProperties")
          found[name] = merge(schema, from[keyword], path, depth + 1);
      }
      return found;
    };
    const Json of_into = others(b, into);
    const Json of_b = others(into, b);
    for (const auto& [name, schema] : of_into.items()) into["properties"][name] = schema;
    if (b.contains("properties") && b["properties"].is_object() &&
        std::string_view(keyword) == "additionalProperties") {
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
    const bool own = into.contains("prefixItems");
    const bool others = b.contains("prefixItems");
    const bool plain = !(own && others) && !(own ? b : into).contains("items");
    const bool same = own && others && into["prefixItems"].is_array() && b["prefixItems"].is_array() &&
                      into["prefixItems"].size() == b["prefixItems"].size();
    if (!plain && !same) fail(path, "prefixItems: joining it with another schema's items is not supported");
    if (same) {
      for (size_t i = 0; i < b["prefixItems"].size(); ++i)
        into["prefixItems"][i] = merge(into["prefixItems"][i], b["prefixItems"][i], path, depth + 1);
    } else if (others) {
      into["prefixItems"] = b["prefixItems"];
    }
  }
  if (b.contains("items"))
    into["items"] = into.contains("items") ? merge(into["items"], b["items"], path, depth + 1) : b["items"];
}

}  // namespace qwench
