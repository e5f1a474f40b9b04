#include "text/parameter_type.h"

#include <cmath>
#include <cstdint>
#include <set>

#include "core/ascii.h"
#include "core/large_integers.h"
#include "qwench/error.h"
#include "text/json_scanner.h"

namespace qwench {
namespace {

constexpr int kDeepestSchema = 8;  // alternatives and references followed

const Json* member(const Json& schema, const char* name) {
  const auto found = schema.find(name);
  return found == schema.end() ? nullptr : &*found;
}

/// What a local reference ("#/$defs/...") points to; null where it leads nowhere.
const Json* resolved(const Json& root, const Json& reference) {
  if (!reference.is_string()) return nullptr;
  const auto& text = reference.get_ref<const std::string&>();
  if (!text.starts_with('#')) return nullptr;
  try {
    const Json::json_pointer pointer(text.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

void collect_types(const Json& root, const Json& schema, int depth, std::set<std::string>& types) {
  if (!schema.is_object() || depth > kDeepestSchema) return;
  if (const Json* type = member(schema, "type")) {
    if (type->is_string()) types.insert(ascii_lower(type->get<std::string>()));
    if (!type->is_array()) return;
    for (const Json& one : *type) {
      if (one.is_string()) types.insert(ascii_lower(one.get<std::string>()));
    }
    return;
  }
  const auto add_type_of = [&](const Json& value) {
    types.insert(value.is_string() ? "string" : value.is_null() ? "null" : "any");
  };
  if (const Json* value = member(schema, "const")) add_type_of(*value);
  if (const Json* values = member(schema, "enum"); values != nullptr && values->is_array()) {
    for (const Json& value : *values) add_type_of(value);
  }
  if (const Json* reference = member(schema, "$ref")) {
    if (const Json* target = resolved(root, *reference)) collect_types(root, *target, depth + 1, types);
  }
  for (const char* name : {"anyOf", "oneOf", "allOf"}) {
    const Json* alternatives = member(schema, name);
    if (alternatives == nullptr || !alternatives->is_array()) continue;
    for (const Json& alternative : *alternatives) collect_types(root, alternative, depth + 1, types);
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The text as JSON where it is a value of the type, else nothing.
std::string typed_json(ParameterType type, std::string_view text) {
  const std::string lower = ascii_lower(text);
  const bool boolean = lower == "true" || lower == "false";
  if (type == ParameterType::boolean || (type == ParameterType::json && boolean)) return boolean ? lower : "";
  Json value;
  try {
    value = parse_json_exactly(text, "a parameter");
  } catch (const Error&) {
    return "";
  }
  if (type == ParameterType::json) return std::string(text);
  if (value.is_number_integer() || large_integer(value)) return std::string(text);
  if (!value.is_number_float()) return "";
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const double number = value.get<double>();
  if (number == std::trunc(number) && std::fabs(number) <= kExact)
    return std::to_string(static_cast<int64_t>(number));
  return type == ParameterType::number ? std::string(text) : "";
}

}  // namespace

ParameterType parameter_type(const Json& schema, const std::string& name) {
  if (!schema.is_object()) return ParameterType::string;
  const Json* properties = member(schema, "properties");
  if (properties == nullptr || !properties->is_object()) return ParameterType::string;
  const Json* parameter = member(*properties, name.c_str());
  if (parameter == nullptr) return ParameterType::string;
  std::set<std::string> types;
  collect_types(schema, *parameter, 0, types);
  types.erase("null");
  if (types.empty()) return ParameterType::string;
  if (types.size() > 1) return ParameterType::json;
  const std::string& type = *types.begin();
  if (type == "string") return ParameterType::string;
  if (type == "integer") return ParameterType::integer;
  if (type == "number") return ParameterType::number;
  if (type == "boolean") return ParameterType::boolean;
  return ParameterType::json;
}

std::string parameter_json(ParameterType type, std::string_view text) {
  if (type != ParameterType::string) {
    std::string json = typed_json(type, trimmed(text));
    if (!json.empty()) return json;
  }
  std::string json = "\"";
  append_json_escaped(json, text);
  return json + "\"";
}

}  // namespace qwench
