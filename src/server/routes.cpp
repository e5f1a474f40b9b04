#include "server/routes.h"

namespace qwench::server {
namespace {

constexpr Route kRoutes[] = {
    {"/v1/chat/completions", "POST", "Answers a conversation."},
    {"/v1/completions", "POST", "Continues texts or token ids."},
    {"/v1/models", "GET", "Lists the served model under each of its names.", true, false},
    {"/v1/models/{model}", "GET", "Describes the served model.", true, false},
    {"/v1/embeddings", "POST", "Vectors of texts."},
    {"/v1/responses", "POST", "Answers a conversation, by OpenAI's newer API; nothing is stored."},
    {"/v1/messages", "POST", "Answers a conversation, by Anthropic's API.", true, true,
     ErrorShape::anthropic},
    {"/v1/messages/count_tokens", "POST", "How many tokens the prompt of /v1/messages has.", true, true,
     ErrorShape::anthropic},
    {"/api/chat", "POST", "Answers a conversation, by Ollama's API.", true, true, ErrorShape::ollama},
    {"/api/generate", "POST", "Answers or continues a text, by Ollama's API.", true, true,
     ErrorShape::ollama},
    {"/api/embed", "POST", "Vectors of texts, by Ollama's API.", true, true, ErrorShape::ollama},
    {"/api/show", "POST", "Describes the served model, by Ollama's API.", true, true, ErrorShape::ollama},
    {"/api/tags", "GET", "Lists the served model, by Ollama's API.", true, true, ErrorShape::ollama},
    {"/api/ps", "GET", "The same: what is served is loaded.", true, true, ErrorShape::ollama},
    {"/api/version", "GET", "The version, by Ollama's API.", true, false, ErrorShape::ollama},
    {"/tokenize", "POST", "The token ids of a text, or of messages as the chat template writes them."},
    {"/detokenize", "POST", "The text of token ids."},
    {"/apply-template", "POST", "The prompt that the chat template makes of messages."},
    {"/props", "GET", "What is served: the model, its default settings, its chat template, the limits."},
    {"/health", "GET",
     "200 when requests are answered; 503 while the model loads and while the server drains.", false, false},
    {"/metrics", "GET", "Counters and histograms in Prometheus's text format.", true, false},
    {"/engine/events", "GET",
     "An event stream: running and waiting choices, the composition of each pass, the blocks of the KV "
     "cache."},
    {"/openapi.json", "GET", "This description.", true, false},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes) {
    const size_t brace = route.path.find('{');
    if (brace == std::string_view::npos
            ? path == route.path
            : path.size() > brace && path.starts_with(route.path.substr(0, brace)))
      return &route;
  }
  return nullptr;
}

ErrorShape errors_of(std::string_view path) {
  if (const Route* route = find_route(path)) return route->errors;
  return path.starts_with("/api/") ? ErrorShape::ollama : ErrorShape::openai;
}

}  // namespace qwench::server
