#include "server/generation_routes.h"

#include "server/anthropic_request.h"
#include "server/embeddings.h"
#include "server/ollama_request.h"
#include "server/responses_request.h"

namespace qwench::server {
namespace {

struct GenerationRoute {
  std::string_view path;
  BodyReader read;
};

constexpr GenerationRoute kGenerationRoutes[] = {
    {"/v1/chat/completions", [](const Json& body, const ServedModel&) { return read_chat_body(body); }},
    {"/v1/completions", [](const Json& body, const ServedModel&) { return read_completion_body(body); }},
    {"/v1/embeddings", read_embeddings_body},
    {"/v1/responses", read_responses_body},
    {"/v1/messages", read_anthropic_body},
    {"/api/chat", read_ollama_chat_body},
    {"/api/generate", read_ollama_generate_body},
    {"/api/embed", read_ollama_embed_body},
};

}  // namespace

BodyReader generation_reader(std::string_view path) {
  for (const GenerationRoute& route : kGenerationRoutes) {
    if (route.path == path) return route.read;
  }
  return nullptr;
}

}  // namespace qwench::server
