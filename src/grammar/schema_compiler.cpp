#include "grammar/schema_compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/large_integers.h"
#include "grammar/json_schema.h"
#include "grammar/schema_integers.h"
#include "grammar/schema_references.h"
#include "grammar/string_formats.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr int kDeepestSchema = 200;

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
    if (schema.contains("$recursiveRef")) fail(path, "the keyword \"$recursiveRef\" is not supported");
    if (SchemaDocument::flattens(schema)) {
      const char* keyword = schema.contains("$ref") ? "$ref" : "$dynamicRef";
      Json others = schema;
      others.erase(keyword);
      if (schema.contains(keyword) && schema[keyword].is_string() && !has_assertions(others)) {
        expr = compile_ref(schema[keyword].get<std::string>(), path);
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
  if (const auto values = document_.valid_values(schema, path)) {
    std::vector<Expr> ways;
    for (const Json& value : *values) ways.push_back(json_.constant(value));
    return builder_.either(std::move(ways));
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return compile_branches(schema, keyword, path);
  }
  std::set<std::string> types = types_of(schema);
  if (types.contains("number")) types.erase("integer");
  if (types.size() == 6 && !has_assertions(schema)) return json_.value();
  std::vector<Expr> ways;
  for (const std::string& type : types) ways.push_back(compile_type(schema, type, path));
  return builder_.either(std::move(ways));
}

GrammarBuilder::Expr SchemaCompiler::compile_branches(const Json& schema, const char* keyword,
                                                      const std::string& path) {
  const std::vector<Json> branches = document_.alternatives(schema, keyword, path);
  std::vector<Expr> ways;
  for (size_t i = 0; i < branches.size(); ++i)
    ways.push_back(compile(branches[i], fmt::format("{}/{}/{}", path, keyword, i)));
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
  const Json resolved = with_resolved_references(schema);
  return SchemaCompiler(builder, json, resolved).compile_root();
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
    const Json json = parse_json_exactly(schema, "the JSON schema", kDeepestText, SameKeys::are_errors);
    refuse_rounded_integers(json, "the JSON schema");
    return with_doubles(json);
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
