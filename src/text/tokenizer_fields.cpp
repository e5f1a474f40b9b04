#include "text/tokenizer_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/printable.h"
#include "core/log.h"
#include "qwench/error.h"

namespace qwench {

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: found {}, expected an object", where_, object.type_name()));
  }
}

bool Fields::has(std::string_view name) const {
  const auto found = object_.find(std::string(name));
  return found != object_.end() && !found->is_null();
}

const Json& Fields::get(std::string_view name) const {
  const auto found = object_.find(std::string(name));
  if (found == object_.end()) fail(name, "is missing");
  return *found;
}

std::string Fields::text(std::string_view name) const {
  const Json& value = get(name);
  if (!value.is_string()) fail(name, fmt::format("is {}, expected a string", value.type_name()));
  return value.get<std::string>();
}

std::string Fields::text_or(std::string_view name, std::string_view otherwise) const {
  return has(name) ? text(name) : std::string(otherwise);
}

bool Fields::flag(std::string_view name) const {
  const Json& value = get(name);
  if (!value.is_boolean()) fail(name, fmt::format("is {}, expected true or false", value.type_name()));
  return value.get<bool>();
}

bool Fields::flag(std::string_view name, bool otherwise) const { return has(name) ? flag(name) : otherwise; }

int64_t Fields::number(std::string_view name, int64_t lowest, int64_t highest) const {
  const Json& value = get(name);
  const bool fits =
      value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
  if (!fits || value.get<int64_t>() < lowest || value.get<int64_t>() > highest) {
    fail(name, fmt::format("is {}, expected a whole number from {} to {}",
                           value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40), lowest,
                           highest));
  }
  return value.get<int64_t>();
}

const Json& Fields::list(std::string_view name) const {
  const Json& value = get(name);
  if (!value.is_array()) fail(name, fmt::format("is {}, expected a list", value.type_name()));
  return value;
}

void Fields::only(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : object_.items()) {
    if (name != "type" && std::find(known.begin(), known.end(), name) == known.end()) {
      log_warning(fmt::format("{} is not known and not used", at(name)));
    }
  }
}

void Fields::unknown_type(std::string_view kind, std::string_view supported) const {
  throw Error(ErrorKind::unsupported, fmt::format("{}: the {} type {} is not supported; supported are {}",
                                                  where_, kind, printable(type()), supported));
}

void Fields::fail(std::string_view name, const std::string& problem) const {
  throw Error(ErrorKind::malformed, fmt::format("{}: \"{}\" {}", where_, name, problem));
}

}  // namespace qwench
