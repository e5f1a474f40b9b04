#include "grammar/schema_compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "grammar/json_schema.h"
#include "grammar/string_formats.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr int kDeepestSchema = 200;

constexpr std::array kUnsupported = {"unevaluatedItems", "$dynamicRef", "$recursiveRef"};

bool has_type(const Json& value, const std::set<std::string>& types) {
  if (value.is_null()) return types.contains("null");
  if (value.is_boolean()) return types.contains("boolean");
  if (value.is_string()) return types.contains("string");
  if (value.is_object()) return types.contains("object");
  if (value.is_array()) return types.contains("array");
  if (types.contains("number")) return true;
  if (!types.contains("integer")) return false;
  const auto decimal = Decimal::of(value);
  return decimal && decimal->fraction.empty();
}

}  // namespace

GrammarBuilder::Expr SchemaCompiler::compile_as_object() {
  return compile(document_.merge(root_, Json{{"type", "object"}}, "#"), "#");
}

GrammarBuilder::Expr SchemaCompiler::compile(const Json& schema, const std::string& path) {
  if (++depth_ > kDeepestSchema) fail(path, "the schema is nested too deeply");
  Expr expr = 0;
  if (schema.is_boolean()) {
    expr = schema.get<bool>() ? json_.value() : builder_.nothing();
  } else if (!schema.is_object()) {
    fail(path, "expected a schema: an object, true or false");
  } else {
    check_keywords(schema, path);
    if (SchemaDocument::flattens(schema)) {
      const bool ref = schema.contains("$ref");
      Json others = schema;
      others.erase("$ref");
      if (ref && schema["$ref"].is_string() && !has_assertions(others)) {
        expr = compile_ref(schema["$ref"].get<std::string>(), path);
      } else {
        expr = compile_merged(schema, path);
      }
    } else {
      expr = compile_flat(schema, path);
    }
  }
  --depth_;
  return expr;
}

GrammarBuilder::Expr SchemaCompiler::compile_ref(const std::string& ref, const std::string& path) {
  const auto known = refs_.find(ref);
  if (known != refs_.end()) return builder_.ref(known->second);
  const Json& target = document_.resolve(ref, path);
  const GrammarBuilder::RuleId rule = builder_.declare(ref);
  refs_.emplace(ref, rule);
  builder_.define(rule, compile(target, ref));
  return builder_.ref(rule);
}

/// The same merged schema, met again inside itself, is the same rule.
GrammarBuilder::Expr SchemaCompiler::compile_merged(const Json& schema, const std::string& path) {
  const Json flat = document_.flatten(schema, path);
  const std::string text = flat.dump();
  const auto known = merged_.find(text);
  if (known != merged_.end()) return builder_.ref(known->second);
  const GrammarBuilder::RuleId rule = builder_.declare(path);
  merged_.emplace(text, rule);
  builder_.define(rule, compile(flat, path));
  return builder_.ref(rule);
}

void SchemaCompiler::check_keywords(const Json& schema, const std::string& path) const {
  for (const char* keyword : kUnsupported) {
    if (!schema.contains(keyword)) continue;
    const Json& value = schema[keyword];
    const bool says_nothing = (value.is_object() && value.empty()) || is_true(value);
    const bool of_items = std::string_view(keyword) == "unevaluatedItems" && !schema.contains("anyOf") &&
                          !schema.contains("oneOf");
    if (!says_nothing && !of_items) fail(path, fmt::format("the keyword \"{}\" is not supported", keyword));
  }
}

void SchemaCompiler::check_types(const Json& schema, const std::string& path) const {
  static const std::set<std::string> known = {"null",   "boolean", "object", "array",
                                              "number", "string",  "integer"};
  if (!schema.contains("type")) return;
  const Json& type = schema["type"];
  const Json list = type.is_array() ? type : Json::array({type});
  for (const Json& one : list) {
    if (!one.is_string() || !known.contains(one.get<std::string>()))
      fail(path, fmt::format("type: found {}, expected one of {}", one.dump(), fmt::join(known, ", ")));
  }
}

GrammarBuilder::Expr SchemaCompiler::compile_flat(const Json& schema, const std::string& path) {
  check_types(schema, path);
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return compile_branches(schema, keyword, path);
  }
  if (schema.contains("enum") || schema.contains("const")) return compile_values(schema, path);
  std::set<std::string> types = types_of(schema);
  if (types.contains("number")) types.erase("integer");
  if (types.size() == 6 && !has_assertions(schema)) return json_.value();
  std::vector<Expr> ways;
  for (const std::string& type : types) ways.push_back(compile_type(schema, type, path));
  return builder_.either(std::move(ways));
}

GrammarBuilder::Expr SchemaCompiler::compile_branches(const Json& schema, const char* keyword,
                                                      const std::string& path) {
  const Json& list = schema[keyword];
  if (!list.is_array() || list.empty())
    fail(path, fmt::format("{}: expected an array of schemas, not empty", keyword));
  Json base = schema;
  base.erase(keyword);
  const bool alone = !has_assertions(base);
  std::vector<Json> branches;
  for (size_t i = 0; i < list.size(); ++i)
    branches.push_back(alone ? list[i]
                             : document_.merge(base, list[i], fmt::format("{}/{}/{}", path, keyword, i)));
  if (std::string_view(keyword) == "oneOf") {
    try {
      branches = document_.exclusive(branches, list, path);
    } catch (const Error& error) {
      fail(path,
           fmt::format("oneOf: it is not evident that no value is valid under two of its alternatives; give "
                       "them different types, or a required property with different const values, or use "
                       "anyOf ({})",
                       error.what()));
    }
  }
  std::vector<Expr> ways;
  for (size_t i = 0; i < branches.size(); ++i)
    ways.push_back(compile(branches[i], fmt::format("{}/{}/{}", path, keyword, i)));
  return builder_.either(std::move(ways));
}

/// Of the values that "enum" and "const" list, those that are valid under the other keywords.
GrammarBuilder::Expr SchemaCompiler::compile_values(const Json& schema, const std::string& path) {
  Json values = schema.contains("enum") ? schema["enum"] : Json::array({schema["const"]});
  if (!values.is_array()) fail(path, "enum: expected an array of values");
  Json others = schema;
  others.erase("enum");
  others.erase("const");
  const std::set<std::string> types = types_of(others.contains("type") ? others : Json::object());
  std::shared_ptr<const Grammar> grammar;
  Json more = others;
  more.erase("type");
  if (has_assertions(more)) {
    GrammarBuilder builder("the JSON schema");
    JsonText json(builder);
    SchemaCompiler compiler(builder, json, root_);
    const GrammarBuilder::RuleId rule = builder.declare("values");
    // Where nothing is valid, a byte that no JSON begins with is.
    builder.define(rule, builder.either({compiler.compile(others, path), builder.literal("!")}));
    grammar = builder.build(rule);
  }
  std::vector<Expr> ways;
  for (const Json& value : values) {
    if (schema.contains("const") && !same_value(value, schema["const"])) continue;
    if (!has_type(value, types)) continue;
    if (grammar && !accepts(*grammar, value.dump())) continue;
    ways.push_back(json_.constant(value));
  }
  return builder_.either(std::move(ways));
}

GrammarBuilder::Expr SchemaCompiler::compile_type(const Json& schema, const std::string& type,
                                                  const std::string& path) {
  if (type == "null") return builder_.literal("null");
  if (type == "boolean") return builder_.either({builder_.literal("true"), builder_.literal("false")});
  if (type == "string") return compile_string(schema, path);
  if (type == "object") return compile_object(schema, path);
  if (type == "array") return compile_array(schema, path);
  return compile_number(schema, type == "integer", path);
}

std::optional<int> SchemaCompiler::count(const Json& schema, const char* keyword,
                                         const std::string& path) const {
  if (!schema.contains(keyword)) return std::nullopt;
  const Json& value = schema[keyword];
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number < 0 || number != static_cast<double>(static_cast<int64_t>(std::min(number, 1e15))))
    fail(path, fmt::format("{}: found {}, expected a whole number from 0", keyword, value.dump()));
  constexpr double kMost = 1 << 20;  // what is longer fits no grammar, or bounds nothing
  return static_cast<int>(std::min(number, kMost));
}

GrammarBuilder::Expr add_json_schema(GrammarBuilder& builder, JsonText& json, const Json& schema) {
  return SchemaCompiler(builder, json, schema).compile_root();
}

std::shared_ptr<const Grammar> compile_json_schema(const Json& schema) {
  GrammarBuilder builder("the JSON schema");
  JsonText json(builder);
  const GrammarBuilder::RuleId root = builder.declare("#");
  builder.define(root, add_json_schema(builder, json, schema));
  return builder.build(root);
}

Json parse_json_schema(std::string_view schema) {
  constexpr size_t kLargestSchema = size_t{1} << 18;
  constexpr int kDeepestText = 128;
  if (schema.size() > kLargestSchema) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the JSON schema: it has {} bytes, more than {}", schema.size(), kLargestSchema));
  }
  try {
    return parse_json(schema, "the JSON schema", kDeepestText);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_argument, error.what());
  }
}

std::shared_ptr<const Grammar> compile_json_schema(std::string_view schema) {
  return compile_json_schema(parse_json_schema(schema));
}

std::shared_ptr<const Grammar> compile_json_object() {
  GrammarBuilder builder("JSON");
  JsonText json(builder);
  const GrammarBuilder::RuleId root = builder.declare("JSON");
  builder.define(root, json.object());
  return builder.build(root);
}

}  // namespace qwench
