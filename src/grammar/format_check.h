#pragma once

#include <functional>
#include <string>

namespace qwench {

enum class FormatCheck { valid, invalid, unclear };

/// Whether a string is of a "format", one that format_pattern() knows, as its standard has it: that takes
/// strings too that are never written, such as leap seconds (RFC 3339) and quoted names of mailboxes (RFC
/// 5321). `matches` says whether the string as a whole is of a pattern.
FormatCheck check_format(const std::string& format, const std::string& text,
                         const std::function<bool(const std::string& pattern)>& matches);

}  // namespace qwench
