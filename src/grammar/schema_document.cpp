#include "grammar/schema_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ascii.h"
#include "grammar/regex_parser.h"

namespace qwench {
namespace {

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

const Json* find_anchor(const Json& schema, std::string_view name) {
  if (schema.is_object() && schema.contains("$anchor") && schema["$anchor"] == name) return &schema;
  if (!schema.is_structured()) return nullptr;
  for (const Json& part : schema) {
    if (const Json* found = find_anchor(part, name)) return found;
  }
  return nullptr;
}

}  // namespace

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
  constexpr std::array<std::pair<const char*, const char*>, 23> kSpeakOf = {{
      {"properties", "object"},
      {"required", "object"},
      {"additionalProperties", "object"},
      {"minProperties", "object"},
      {"maxProperties", "object"},
      {"unevaluatedProperties", "object"},
      {"items", "array"},
      {"prefixItems", "array"},
      {"minItems", "array"},
      {"maxItems", "array"},
      {"minLength", "string"},
      {"maxLength", "string"},
      {"pattern", "string"},
      {"format", "string"},
      {"minimum", "number"},
      {"maximum", "number"},
      {"exclusiveMinimum", "number"},
      {"exclusiveMaximum", "number"},
      {"multipleOf", "number"},
      {"patternProperties", "object"},
      {"propertyNames", "object"},
      {"contains", "array"},
      {"uniqueItems", "array"},
  }};
  std::set<std::string> types;
  for (const auto& [keyword, type] : kSpeakOf) {
    if (schema.contains(keyword)) types.insert(type);
  }
  return types.empty() ? all : types;
}

bool holds_pattern(const std::string& pattern, const std::string& text) {
  GrammarBuilder builder("the pattern");
  const EncodeChars encode = [&](const CodeRanges& set) { return builder.chars(set); };
  const GrammarBuilder::RuleId root = builder.declare("pattern");
  builder.define(root, holds_match(builder, parse_regex(builder, pattern, encode, ""), encode));
  return accepts(*builder.build(root), text);
}

void SchemaDocument::fail(const std::string& path, const std::string& sentence) const {
  builder_.fail(fmt::format("{}: {}", path, sentence));
}

bool same_value(const Json& a, const Json& b) {
  if (a.is_primitive() || b.is_primitive()) return a == b;
  return nlohmann::json(a) == nlohmann::json(b);  // which sorts members
}

bool has_value(const Json& list, const Json& value) {
  return std::any_of(list.begin(), list.end(), [&](const Json& one) { return same_value(one, value); });
}

const Json& SchemaDocument::resolve(const std::string& ref, const std::string& path) const {
  std::string_view fragment = ref;
  if (root_.is_object() && root_.contains("$id") && root_["$id"].is_string()) {
    const std::string& id = root_["$id"].get_ref<const std::string&>();
    if (fragment.starts_with(id)) fragment.remove_prefix(id.size());
    if (fragment.empty()) return root_;
  }
  if (fragment.starts_with('#') && fragment.size() > 1 && fragment[1] != '/') {
    if (const Json* found = find_anchor(root_, fragment.substr(1))) return *found;
    fail(path, fmt::format("$ref \"{}\" names nothing in the schema", ref));
  }
  if (!fragment.starts_with('#')) {
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

bool SchemaDocument::flattens(const Json& schema) {
  constexpr std::array kKeywords = {
      "$ref", "allOf", "not", "if", "dependentRequired", "dependentSchemas", "dependencies"};
  return schema.is_object() && std::any_of(kKeywords.begin(), kKeywords.end(),
                                           [&](const char* keyword) { return schema.contains(keyword); });
}

Json SchemaDocument::flatten(const Json& schema, const std::string& path, int depth) const {
  spend(path);
  if (depth > kDeepestMerge) fail(path, "its $ref and allOf are nested too deeply or refer to themselves");
  if (!flattens(schema)) return schema;
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
  return flat.is_object() ? apply_conditions(std::move(flat), path, depth) : flat;
}

}  // namespace qwench
