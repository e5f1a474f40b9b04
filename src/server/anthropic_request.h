#pragma once

#include "server/generation_routes.h"

namespace qwench::server {

// Bodies of Anthropic's API (https://docs.anthropic.com/en/api/messages); see request_fields.h.
const Json& anthropic_fields();        ///< of /v1/messages
const Json& anthropic_count_fields();  ///< of /v1/messages/count_tokens

// Throw ApiError (400).
GenerationBody read_anthropic_body(const Json& body, const ServedModel& model);
GenerationBody read_anthropic_count_body(const Json& body, const ServedModel& model);

}  // namespace qwench::server
