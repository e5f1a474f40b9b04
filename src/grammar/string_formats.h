#pragma once

#include <string>
#include <string_view>

namespace qwench {

/// A pattern (see parse_regex) of strings that a "format" of JSON Schema takes: date (RFC 3339, with the days
/// that each month has), ...: see known_formats(). Null for formats that are not known.
const char* format_pattern(std::string_view format);
/// Whether it is of OpenAPI's formats that tell programs how to hold a value, and change no string's
/// validity.
bool says_nothing_of_strings(std::string_view format);
/// "date, time, ..."
std::string_view known_formats();
/// The sentence that refuses a format.
std::string unknown_format(std::string_view format);

}  // namespace qwench
