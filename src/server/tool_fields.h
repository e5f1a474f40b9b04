#pragma once

#include "core/json.h"

namespace qwench::server {

inline constexpr int kMaxTools = 1024;

/// `tools`, as JSON Schema (see request_fields.h).
Json tools_field();
/// tool_choice, parallel_tool_calls, and what they replaced.
Json tool_choice_fields();

}  // namespace qwench::server
