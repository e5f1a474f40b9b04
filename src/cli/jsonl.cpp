#include "cli/jsonl.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <istream>
#include <limits>

#include "cli/terminal.h"
#include "core/large_integers.h"
#include "engine/constraint_fields.h"
#include "grammar/schema_integers.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

constexpr int kDeepestLine = 200;

const Json& required(const Json& object, std::string_view field) {
  const Json* value = find(object, field);
  if (value == nullptr) invalid(fmt::format("the field \"{}\" is missing", field));
  return *value;
}

[[noreturn]] void fail_type(std::string_view field, const Json& value, std::string_view expected) {
  invalid(fmt::format("{}: found {}, expected {}", field,
                      value.is_structured() ? json_type(value) : to_line(value).substr(0, 40), expected));
}

}  // namespace

void invalid(const std::string& sentence) { throw Error(ErrorKind::invalid_argument, sentence); }

std::string to_line(const Json& value) { return json_line(value); }

Json parse_line(std::string_view line) {
  Json value = parse_json_exactly(line, "the line", kDeepestLine, SameKeys::are_errors);
  if (!value.is_object()) invalid(fmt::format("the line is a JSON {}, expected an object", json_type(value)));
  for (const char* field : kSchemaFields) {
    if (const Json* schema = find(value, field)) refuse_rounded_integers(*schema, "the line", field);
  }
  for (auto& [name, item] : value.items()) {
    const bool for_template =
        name == "messages" || name == "tools" || name == "documents" || name == "kwargs";
    if (!for_template && has_large_integers(item)) item = with_doubles(item);
  }
  return value;
}

Json error_line(std::string_view sentence) { return Json{{"error", sentence}}; }

void answer_lines(std::istream& in, const std::function<Json(const Json& request)>& answer) {
  std::string line;
  while (std::getline(in, line)) {
    Json out;
    try {
      out = answer(parse_line(line));
    } catch (const Error& error) {
      out = error_line(error.what());
    }
    print(to_line(out) + "\n");
  }
}

void check_fields(const Json& object, std::span<const std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    invalid(fmt::format("the field \"{}\" is not known here; known are {}", printable(name.substr(0, 60)),
                        fmt::join(known, ", ")));
  }
}

const Json* find(const Json& object, std::string_view field) {
  const auto found = object.find(std::string(field));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string string_field(const Json& object, std::string_view field) {
  const Json& value = required(object, field);
  if (!value.is_string()) fail_type(field, value, "a string");
  return value.get<std::string>();
}

bool bool_field(const Json& object, std::string_view field, bool fallback) {
  const Json* value = find(object, field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail_type(field, *value, "true or false");
  return value->get<bool>();
}

int int_field(const Json& object, std::string_view field, int low, int high) {
  const Json& value = required(object, field);
  const bool ok =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= static_cast<uint64_t>(high) && value.get<int64_t>() >= low
          : value.is_number_integer() && value.get<int64_t>() >= low && value.get<int64_t>() <= high;
  if (!ok) fail_type(field, value, fmt::format("a whole number from {} to {}", low, high));
  return value.get<int>();
}

std::vector<TokenId> ids_field(const Json& object, std::string_view field) {
  const Json& value = required(object, field);
  if (!value.is_array()) fail_type(field, value, "an array of token ids");
  std::vector<TokenId> ids;
  ids.reserve(value.size());
  for (const Json& id : value) {
    const bool ok = id.is_number_unsigned() &&
                    id.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<TokenId>::max());
    if (!ok) fail_type(fmt::format("{}[{}]", field, ids.size()), id, "a token id, a whole number from 0");
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

}  // namespace qwench::cli
