#pragma once

#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace qwench::jinja {

/// datetime.strftime of a local time without time zone, in the C locale, with glibc's flags (- _ 0 ^ #) and
/// widths.
std::string format_time(std::string_view format, LocalTime time);

}  // namespace qwench::jinja
