#pragma once

#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace qwench::jinja {

/// datetime.strftime of a local time without time zone as CPython 3.11 on glibc 2.36 gives it in the C
/// locale, flags, widths and modifiers included. Fails on a format with a zero byte, as there.
std::string format_time(std::string_view format, LocalTime time);

}  // namespace qwench::jinja
