#pragma once

#include <span>
#include <utility>

#include "core/json.h"
#include "server/request_body.h"

namespace qwench::server {

/// A field of a chat body and the name that it has in another API; one that begins with a dot may stand
/// inside a path.
using FieldName = std::pair<const char*, const char*>;

/// Reads a body of /v1/chat/completions that was made of another API's: one inner path for all of them. What
/// is wrong with it is said under the other API's names. Throws ApiError (400).
GenerationBody read_translated_chat(const Json& chat, std::span<const FieldName> names);

/// Copies a field where it is given; `name` may be another in the chat body.
void copy_field(const Json& from, const char* field, Json& chat, const char* name = nullptr);

}  // namespace qwench::server
