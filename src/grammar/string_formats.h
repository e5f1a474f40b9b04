#pragma once

#include <string_view>

namespace qwench {

/// A pattern (see parse_regex) of strings that a "format" of JSON Schema takes: date (RFC 3339, with the days
/// that each month has), time, date-time, duration, uuid, email, hostname, ipv4, ipv6, uri. Null for formats
/// that are not known.
const char* format_pattern(std::string_view format);
/// "date, time, ..."
std::string_view known_formats();

}  // namespace qwench
