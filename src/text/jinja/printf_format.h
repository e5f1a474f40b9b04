#pragma once

#include "text/jinja/runtime.h"

namespace qwench::jinja {

/// Python's `format % arguments` for strings. Each part of the result has the origin of what it was made
/// from.
Value format_printf(Runtime& rt, const Value& format, const Value& arguments);

/// Python's format.format(*positional, **named), with the sandbox's rules for attributes. `mapping`, when
/// given, stands for the names (format_map).
Value format_braces(Runtime& rt, const Value& format, const Arguments& arguments, const Value* mapping);

}  // namespace qwench::jinja
