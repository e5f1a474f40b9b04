#pragma once

#include "core/json.h"

namespace qwench::server {

inline constexpr int kMaxTools = 1024;
// Characters of a tool's name: what OpenAI allows in chats, and what the other APIs do.
inline constexpr int kLongestChatToolName = 64;
inline constexpr int kLongestApiToolName = 128;

Json tool_name_field(int longest);
/// `tools`, as JSON Schema (see request_fields.h).
Json tools_field(int longest_name);
/// tool_choice, parallel_tool_calls, and what they replaced.
Json tool_choice_fields(int longest_name);

}  // namespace qwench::server
