#include "checkpoint/json_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "checkpoint/printable.h"
#include "qwench/error.h"

namespace qwench {

std::string printable_json(const Json& value) {
  if (value.is_array()) return fmt::format("a list of {} values", value.size());
  if (value.is_object()) return "an object";
  if (value.is_string()) return printable(std::string_view(value.get_ref<const std::string&>()));
  return value.dump();
}

JsonFields::JsonFields(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
  if (!json.is_object()) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: expected a JSON object, found {}", what_, printable_json(json)));
  }
}

const Json* JsonFields::find(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::is_null(const char* key) const {
  const auto found = json_.find(key);
  return found != json_.end() && found->is_null();
}

void JsonFields::wrong(const char* key, const Json& value, const std::string& expected) const {
  throw Error(ErrorKind::malformed,
              fmt::format("{}: `{}` is {}, expected {}", what_, key, printable_json(value), expected));
}

std::optional<int64_t> JsonFields::integer(const char* key, int64_t low, int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a whole number from {} to {}", low, high);
  if (!value->is_number_integer()) wrong(key, *value, expected);
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    wrong(key, *value, expected);
  const auto number = value->get<int64_t>();
  if (number < low || number > high) wrong(key, *value, expected);
  return number;
}

int64_t JsonFields::required_integer(const char* key, int64_t low, int64_t high) const {
  const auto value = integer(key, low, high);
  if (!value) throw Error(ErrorKind::malformed, fmt::format("{}: `{}` is missing", what_, key));
  return *value;
}

std::optional<double> JsonFields::number(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) wrong(key, *value, "a finite number");
  return value->get<double>();
}

std::optional<bool> JsonFields::boolean(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonFields::string(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong(key, *value, "a string");
  return value->get<std::string>();
}

std::optional<std::vector<std::string>> JsonFields::strings(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) wrong(key, *value, "a list of strings");
  std::vector<std::string> result;
  for (const Json& element : *value) {
    if (!element.is_string()) wrong(key, *value, "a list of strings");
    result.push_back(element.get<std::string>());
  }
  return result;
}

std::optional<TokenId> JsonFields::token_id(const char* key) const {
  const auto value = integer(key, 0, INT32_MAX);
  return value ? std::optional(static_cast<TokenId>(*value)) : std::nullopt;
}

std::vector<TokenId> JsonFields::token_ids(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {*token_id(key)};
  std::vector<TokenId> result;
  for (const Json& element : *value) {
    const bool in_range = element.is_number_unsigned() && element.get<uint64_t>() <= INT32_MAX;
    if (!in_range) wrong(key, element, "token ids, each a whole number from 0 up");
    result.push_back(element.get<TokenId>());
  }
  return result;
}

}  // namespace qwench
