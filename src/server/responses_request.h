#pragma once

#include "server/generation_routes.h"

namespace qwench::server {

/// What a body of OpenAI's /v1/responses may hold (https://platform.openai.com/docs/api-reference/responses);
/// see request_fields.h.
const Json& responses_fields();

/// Throws ApiError (400).
GenerationBody read_responses_body(const Json& body, const ServedModel& model);

}  // namespace qwench::server
