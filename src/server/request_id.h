#pragma once

#include <string>
#include <string_view>

namespace qwench::server {

/// 32 hexadecimal digits, drawn. From any thread.
std::string new_request_id();
/// Of a call of a tool: "call_" and 24 hexadecimal digits, drawn. From any thread.
std::string new_call_id();
/// Whether a client's own id may go into headers and logs: 1 to 128 letters, digits, '-', '_', '.' or ':'.
bool is_request_id(std::string_view text);

}  // namespace qwench::server
