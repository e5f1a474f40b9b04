#pragma once

#include "server/generation_routes.h"

namespace qwench::server {

// What the bodies may hold; see request_fields.h.
const Json& embeddings_fields();    ///< of OpenAI's /v1/embeddings
const Json& ollama_embed_fields();  ///< of Ollama's /api/embed

// Throw ApiError (400).
GenerationBody read_embeddings_body(const Json& body, const ServedModel& model);
GenerationBody read_ollama_embed_body(const Json& body, const ServedModel& model);

/// Little-endian floats as base64 (RFC 4648, padded): OpenAI's encoding_format "base64".
std::string base64_of(const std::vector<float>& vector);

}  // namespace qwench::server
