#include "grammar/schema_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "grammar/lookaheads.h"
#include "grammar/number_range.h"
#include "grammar/regex_parser.h"
#include "grammar/schema_references.h"
#include "grammar/schema_validator.h"
#include "qwench/error.h"

namespace qwench {
namespace {

/// A token of a JSON pointer.
std::string decode_token(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      out += token[++i] == '0' ? '~' : '/';
    } else {
      out += token[i];
    }
  }
  return out;
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
                                                    "$dynamicAnchor",
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
  return annotations.contains(keyword) || keyword.starts_with("x-") || keyword == kUnevaluated ||
         keyword == kUnclear;
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

void SchemaDocument::fail(const std::string& path, const std::string& sentence) const {
  builder_.fail(fmt::format("{}: {}", path, sentence));
}

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return compare(*Decimal::of(a), *Decimal::of(b)) == 0;
  if (a.size() != b.size() || a.is_structured() != b.is_structured()) return false;
  if (a.is_array() && b.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_value);
  if (!a.is_object() || !b.is_object()) return a == b;
  const auto members = a.items();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return b.contains(member.key()) && same_value(member.value(), b[member.key()]);
  });
}

bool has_value(const Json& list, const Json& value) {
  return std::any_of(list.begin(), list.end(), [&](const Json& one) { return same_value(one, value); });
}

const Json& SchemaDocument::resolve(const std::string& ref, const std::string& path) const {
  if (ref.starts_with(kUnresolved)) {
    const std::string text = ref.substr(1);
    fail(path,
         fmt::format("$ref \"{}\" {}", text,
                     text.starts_with('#') ? "names nothing in the schema, or as a $dynamicRef several places"
                                           : "is not supported: only places of the same schema are, such as "
                                             "\"#/$defs/name\""));
  }
  std::string_view pointer = ref;
  pointer.remove_prefix(std::min<size_t>(1, pointer.size()));
  const Json* at = &root_;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string token = decode_token(pointer.substr(0, end));
    pointer.remove_prefix(end);
    at = at->is_object() ? &at->at(token) : &at->at(std::stoul(token));
  }
  return *at;
}

bool SchemaDocument::matches(const std::string& pattern, const std::string& text,
                             const std::string& path) const {
  if (const auto parts = split_lookaheads(pattern); parts.size() > 1 || !parts[0].holds) {
    return std::all_of(parts.begin(), parts.end(), [&](const PatternPart& part) {
      return matches(part.pattern, text, path) == part.holds;
    });
  }
  std::shared_ptr<const Grammar>& known = patterns_[pattern];
  if (!known) {
    GrammarBuilder builder("the pattern");
    const EncodeChars encode = [&](const CodeRanges& set) { return builder.chars(set); };
    const GrammarBuilder::RuleId root = builder.declare("pattern");
    // Never without a text, which would be no grammar: a byte that no UTF-8 holds stands for it.
    try {
      builder.define(root,
                     builder.either({holds_match(builder, parse_regex(builder, pattern, encode, ""), encode),
                                     builder.byte(0xFF, 0xFF)}));
      known = builder.build(root);
    } catch (const Error& error) {
      const std::string_view sentence = error.what();
      constexpr std::string_view kPrefix = "the pattern: ";
      fail(path, std::string(sentence.substr(sentence.starts_with(kPrefix) ? kPrefix.size() : 0)));
    }
  }
  return accepts(*known, text);
}

bool SchemaDocument::is_valid(const Json& value, const Json& schema, const std::string& path) const {
  return SchemaValidator(*this).is_valid(value, schema, path);
}

std::optional<Json> SchemaDocument::valid_values(const Json& schema, const std::string& path) const {
  if (!schema.is_object() || (!schema.contains("enum") && !schema.contains("const"))) return std::nullopt;
  const Json listed = schema.contains("const") ? Json::array({schema["const"]}) : schema["enum"];
  if (!listed.is_array()) fail(path, "enum: expected an array of values");
  Json values = Json::array();
  for (const Json& value : listed) {
    if (is_valid(value, schema, path) && !has_value(values, value)) values.push_back(value);
  }
  return values;
}

void SchemaDocument::spend(const std::string& path) const {
  constexpr int kMostMerges = 5000;
  if (++spent_ > kMostMerges) fail(path, "it joins too many schemas by $ref, allOf, anyOf and oneOf");
}

bool SchemaDocument::flattens(const Json& schema) {
  constexpr std::array kKeywords = {"$ref",
                                    "$dynamicRef",
                                    "allOf",
                                    "not",
                                    "if",
                                    "dependentRequired",
                                    "dependentSchemas",
                                    "dependencies",
                                    "unevaluatedProperties",
                                    "unevaluatedItems"};
  return schema.is_object() && std::any_of(kKeywords.begin(), kKeywords.end(),
                                           [&](const char* keyword) { return schema.contains(keyword); });
}

Json SchemaDocument::flatten(const Json& schema, const std::string& path, int depth) const {
  spend(path);
  if (depth > kDeepestMerge) fail(path, "its $ref and allOf are nested too deeply or refer to themselves");
  if (!flattens(schema)) return schema;
  if (const auto values = valid_values(schema, path)) return {{"enum", *values}};
  constexpr std::array kApart = {"$ref", "$dynamicRef", "allOf", "unevaluatedProperties", "unevaluatedItems"};
  Json flat = Json::object();
  for (const auto& [keyword, value] : schema.items()) {
    if (std::find(kApart.begin(), kApart.end(), std::string_view(keyword)) == kApart.end())
      flat[keyword] = value;
  }
  for (const char* keyword : {"$ref", "$dynamicRef"}) {
    if (!schema.contains(keyword)) continue;
    if (!schema[keyword].is_string()) fail(path, fmt::format("{}: expected a string", keyword));
    const std::string ref = schema[keyword].get<std::string>();
    flat = merge(flat, flatten(resolve(ref, path), ref, depth + 1), path, depth + 1);
  }
  if (schema.contains("allOf")) {
    if (!schema["allOf"].is_array()) fail(path, "allOf: expected an array of schemas");
    size_t index = 0;
    for (const Json& part : schema["allOf"])
      flat =
          merge(flat, flatten(part, fmt::format("{}/allOf/{}", path, index++), depth + 1), path, depth + 1);
  }
  if (flat.is_object()) flat = apply_conditions(std::move(flat), path, depth);
  const bool closes = schema.contains("unevaluatedProperties") || schema.contains("unevaluatedItems");
  return closes ? close(flat, schema, path, depth + 1) : flat;
}

}  // namespace qwench
