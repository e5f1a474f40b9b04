#include "server/json_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/utf8.h"
#include "server/api_error.h"

namespace qwench::server {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& sentence) {
  throw ApiError(400, path.empty() ? sentence : fmt::format("{}: {}", path, sentence), path);
}

/// A value as an error message shows it: short, on one line.
std::string shown(const Json& value) {
  constexpr size_t kLongest = 60;
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = to_line(value);
  return text.size() <= kLongest ? text : to_valid_utf8(text.substr(0, kLongest)) + "...";
}

bool is_whole(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::isfinite(value.get<double>()) &&
         value.get<double>() == std::trunc(value.get<double>());
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  return type == "integer" && is_whole(value);
}

std::vector<std::string> types_of(const Json& schema) {
  const auto type = schema.find("type");
  if (type == schema.end()) return {};
  if (type->is_string()) return {type->get<std::string>()};
  return type->get<std::vector<std::string>>();
}

const Json* member(const Json& schema, const char* name) {
  const auto found = schema.find(name);
  return found == schema.end() ? nullptr : &*found;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

template <typename T>
std::string range_of(const Json& schema, const char* low_name, const char* high_name, T fallback) {
  const Json* low = member(schema, low_name);
  const Json* high = member(schema, high_name);
  if (low != nullptr && high != nullptr) return fmt::format(" from {} to {}", to_line(*low), to_line(*high));
  if (low != nullptr) return fmt::format(" from {}", to_line(*low));
  if (high != nullptr) return fmt::format(" of at most {}", to_line(*high));
  return fallback;
}

std::string describe_type(const Json& schema, const std::string& type) {
  if (type == "boolean") return "true or false";
  if (type == "integer") return "a whole number" + range_of(schema, "minimum", "maximum", "");
  if (type == "number") {
    if (const Json* above = member(schema, "exclusiveMinimum")) {
      const Json* high = member(schema, "maximum");
      return fmt::format("a number above {}{}", to_line(*above),
                         high == nullptr ? "" : fmt::format(", at most {}", to_line(*high)));
    }
    return "a number" + range_of(schema, "minimum", "maximum", "");
  }
  if (type == "string") {
    const Json* longest = member(schema, "maxLength");
    const bool filled = member(schema, "minLength") != nullptr;
    return fmt::format(
        "{}{}", filled ? "a string that is not empty" : "a string",
        longest == nullptr ? "" : fmt::format(", of at most {} characters", to_line(*longest)));
  }
  if (type == "array") {
    const std::string of =
        schema.contains("items") ? fmt::format(", each {}", describe_schema(schema["items"])) : "";
    return "an array" + range_of(schema, "minItems", "maxItems", "") + of;
  }
  if (type == "object") return "an object";
  return "null";
}

void check_number(const Json& value, const Json& schema, const std::string& path) {
  // Compared as long double: 64 bits of mantissa hold every integer that JSON's reader gives.
  const auto number = [](const Json& json) {
    if (json.is_number_unsigned()) return static_cast<long double>(json.get<uint64_t>());
    if (json.is_number_integer()) return static_cast<long double>(json.get<int64_t>());
    return static_cast<long double>(json.get<double>());
  };
  const long double found = number(value);
  const Json* low = member(schema, "minimum");
  const Json* high = member(schema, "maximum");
  const Json* above = member(schema, "exclusiveMinimum");
  const bool ok = (low == nullptr || found >= number(*low)) && (high == nullptr || found <= number(*high)) &&
                  (above == nullptr || found > number(*above)) && std::isfinite(found);
  if (!ok) fail(path, fmt::format("found {}, expected {}", shown(value), describe_schema(schema)));
}

void check_count(size_t count, const Json& schema, const char* low_name, const char* high_name,
                 std::string_view what, const std::string& path) {
  const Json* low = member(schema, low_name);
  const Json* high = member(schema, high_name);
  if (low != nullptr && count < low->get<size_t>())
    fail(path, fmt::format("has {} {}, expected at least {}", count, what, to_line(*low)));
  if (high != nullptr && count > high->get<size_t>())
    fail(path, fmt::format("has {} {}, expected at most {}", count, what, to_line(*high)));
}

void check_object(const Json& value, const Json& schema, const std::string& path) {
  check_count(value.size(), schema, "minProperties", "maxProperties", "members", path);
  const auto inside = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  const Json* properties = member(schema, "properties");
  // An object of another kind is not told which fields of this kind it lacks.
  if (properties != nullptr && properties->contains("type") && value.contains("type"))
    check_schema(value["type"], (*properties)["type"], inside("type"));
  if (const Json* required = member(schema, "required")) {
    for (const Json& name : *required) {
      if (!value.contains(name.get<std::string>()))
        fail(inside(name.get<std::string>()), "this field is missing");
    }
  }
  const Json* others = member(schema, "additionalProperties");
  for (const auto& [name, item] : value.items()) {
    if (properties != nullptr && properties->contains(name)) {
      check_schema(item, (*properties)[name], inside(name));
    } else if (others != nullptr && others->is_object()) {
      check_schema(item, *others, inside(name));
    } else if (others != nullptr && *others == false) {
      const std::string known_name = to_valid_utf8(name.substr(0, 60));
      fail(inside(known_name),
           "this field is not known here; a field without effect could change what you "
           "get unseen, so it is refused");
    }
  }
}

/// Whether objects of the schema say by their "type", of some listed ones, what they are.
bool is_tagged(const Json& schema) {
  const Json* properties = member(schema, "properties");
  const Json* tag = properties == nullptr ? nullptr : member(*properties, "type");
  return tag != nullptr && tag->contains("enum");
}

/// The alternative of an anyOf that the value's type points to, and of several kinds of objects its "type":
/// its complaint says more than the choice's.
const Json* alternative_of_type(const Json& alternatives, const Json& value, const std::string& path) {
  std::vector<const Json*> found;
  for (const Json& alternative : alternatives) {
    const std::vector<std::string> types = types_of(alternative);
    if (std::any_of(types.begin(), types.end(), [&](const auto& type) { return has_type(value, type); }))
      found.push_back(&alternative);
  }
  if (found.size() == 1) return found.front();
  if (found.empty() || !value.is_object() ||
      !std::all_of(found.begin(), found.end(), [](const Json* one) { return is_tagged(*one); }))
    return nullptr;
  Json tags{{"enum", Json::array()}};
  for (const Json* one : found) {
    for (const Json& tag : (*one)["properties"]["type"]["enum"]) {
      if (value.contains("type") && value["type"] == tag) return one;
      tags["enum"].push_back(tag);
    }
  }
  const std::string place = path.empty() ? "type" : path + ".type";
  if (!value.contains("type")) fail(place, "this field is missing");
  check_schema(value["type"], tags, place);
  return nullptr;
}

void check_any_of(const Json& value, const Json& schema, const std::string& path) {
  const Json& alternatives = schema["anyOf"];
  if (const Json* only = alternative_of_type(alternatives, value, path))
    return check_schema(value, *only, path);
  for (const Json& alternative : alternatives) {
    try {
      return check_schema(value, alternative, path);
    } catch (const ApiError&) {
      continue;
    }
  }
  fail(path, fmt::format("found {}, expected {}", shown(value), describe_schema(schema)));
}

}  // namespace

std::string describe_schema(const Json& schema) {
  std::vector<std::string> parts;
  if (const Json* alternatives = member(schema, "anyOf")) {
    for (const Json& alternative : *alternatives) parts.push_back(describe_schema(alternative));
  } else if (const Json* values = member(schema, "enum")) {
    for (const Json& value : *values) parts.push_back(to_line(value));
  } else {
    for (const std::string& type : types_of(schema)) {
      if (type != "null" || types_of(schema).size() == 1) parts.push_back(describe_type(schema, type));
    }
  }
  return fmt::format("{}", fmt::join(parts, " or "));
}

void check_schema(const Json& value, const Json& schema, const std::string& path) {
  if (schema.contains("anyOf")) return check_any_of(value, schema, path);
  const std::vector<std::string> types = types_of(schema);
  if (types == std::vector<std::string>{"null"} && !value.is_null() && schema.contains("description"))
    fail(path, schema["description"].get<std::string>());
  if (!types.empty() &&
      std::none_of(types.begin(), types.end(), [&](const auto& type) { return has_type(value, type); })) {
    fail(path, fmt::format("found {}, expected {}", shown(value), describe_schema(schema)));
  }
  if (const Json* values = member(schema, "enum")) {
    if (std::find(values->begin(), values->end(), value) == values->end())
      fail(path, fmt::format("found {}, expected {}", shown(value), describe_schema(schema)));
  }
  if (value.is_number()) check_number(value, schema, path);
  if (value.is_string()) {
    check_count(characters(value.get_ref<const std::string&>()), schema, "minLength", "maxLength",
                "characters", path);
  }
  if (value.is_array()) {
    check_count(value.size(), schema, "minItems", "maxItems", "entries", path);
    if (const Json* items = member(schema, "items")) {
      for (size_t i = 0; i < value.size(); ++i)
        check_schema(value[i], *items, fmt::format("{}[{}]", path, i));
    }
  }
  if (value.is_object()) check_object(value, schema, path);
}

}  // namespace qwench::server
