#pragma once

#include "server/generation_routes.h"

namespace qwench::server {

// Bodies of Ollama's API (https://github.com/ollama/ollama/blob/main/docs/api.md); see request_fields.h.
const Json& ollama_chat_fields();      ///< of /api/chat
const Json& ollama_generate_fields();  ///< of /api/generate
const Json& ollama_show_fields();      ///< of /api/show

// Throw ApiError (400). A body without messages or prompt asks only that the model be loaded: it is answered
// at once.
GenerationBody read_ollama_chat_body(const Json& body, const ServedModel& model);
GenerationBody read_ollama_generate_body(const Json& body, const ServedModel& model);
std::string read_ollama_show_body(const Json& body);  ///< the model's name

}  // namespace qwench::server
