#include "engine/constraint_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "qwench/error.h"

namespace qwench {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& expected) {
  throw Error(ErrorKind::invalid_argument, fmt::format("{}: expected {}", name, expected));
}

std::string schema_text(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() && !value.is_boolean()) fail(name, "a JSON Schema: an object, or its text");
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Constraint> response_format(const std::string& name, const Json& value) {
  const std::string type =
      value.is_object() && value.contains("type") && value["type"].is_string() ? value["type"] : "";
  if (type == "text") return std::nullopt;
  if (type == "json_object") return Constraint{.kind = Constraint::Kind::json_object};
  if (type != "json_schema")
    fail(name, "an object whose \"type\" is \"text\", \"json_object\" or \"json_schema\"");
  const bool there = value.contains("json_schema") && value["json_schema"].is_object() &&
                     value["json_schema"].contains("schema");
  if (!there) fail(name, "with the type \"json_schema\", the schema in \"json_schema\": {\"schema\": ...}");
  return Constraint{.kind = Constraint::Kind::json_schema,
                    .text = schema_text(name, value["json_schema"]["schema"])};
}

std::optional<Constraint> constraint_of(const std::string& name, const Json& value) {
  if (name == "response_format") return response_format(name, value);
  if (name == "guided_json" || name == "json_schema")
    return Constraint{.kind = Constraint::Kind::json_schema, .text = schema_text(name, value)};
  if (name == "guided_choice") {
    const bool texts =
        value.is_array() && !value.empty() &&
        std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
    if (!texts) fail(name, "an array of strings, not empty");
    return Constraint{.kind = Constraint::Kind::choice, .choices = value.get<std::vector<std::string>>()};
  }
  if (!value.is_string()) fail(name, "a string");
  return Constraint{.kind = name == "guided_regex" ? Constraint::Kind::regex : Constraint::Kind::grammar,
                    .text = value.get<std::string>()};
}

}  // namespace

bool read_constraint_field(const std::string& name, const Json& value,
                           std::optional<Constraint>& constraint) {
  if (std::find(std::begin(kConstraintFields), std::end(kConstraintFields), name) ==
      std::end(kConstraintFields))
    return false;
  if (value.is_null()) return true;
  std::optional<Constraint> wanted = constraint_of(name, value);
  if (wanted && constraint)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: another field constrains the text already; only one may", name));
  if (wanted) constraint = std::move(wanted);
  return true;
}

}  // namespace qwench
