#pragma once

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "qwench/sampling.h"

namespace qwench::cli {

/// Throws Error (invalid_argument).
[[noreturn]] void invalid(const std::string& sentence);

/// One line of JSON text, without newline; ill-formed UTF-8 becomes U+FFFD.
std::string to_line(const Json& value);

/// A line in, which must be one JSON object. Throws Error (invalid_argument or malformed).
Json parse_line(std::string_view line);

/// {"error": sentence}
Json error_line(std::string_view sentence);

/// Answers each line of `in` with one of `out`, at once and in order: `answer`'s, or an {"error"} line where
/// it throws an Error.
void answer_lines(std::istream& in, const std::function<Json(const Json& request)>& answer);

// Fields of a line. Each throws Error (invalid_argument) that names the field.

/// Every field must be one of `known`.
void check_fields(const Json& object, std::span<const std::string_view> known);
inline void check_fields(const Json& object, std::initializer_list<std::string_view> known) {
  check_fields(object, std::span(known.begin(), known.size()));
}
const Json* find(const Json& object, std::string_view field);  ///< null when absent or null
std::string string_field(const Json& object, std::string_view field);
bool bool_field(const Json& object, std::string_view field, bool fallback);
int int_field(const Json& object, std::string_view field, int low, int high);
std::vector<TokenId> ids_field(const Json& object, std::string_view field);

}  // namespace qwench::cli
