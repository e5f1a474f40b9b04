#include "server/openapi.h"

#include "server/anthropic_request.h"
#include "server/embeddings.h"
#include "server/generation_routes.h"
#include "server/ollama_request.h"
#include "server/request_fields.h"
#include "server/responses_request.h"
#include "server/routes.h"
#include "server/version.h"

namespace qwench::server {
namespace {

Json reference(const char* name) { return {{"$ref", std::string("#/components/schemas/") + name}}; }

Json content(const char* media, Json schema) { return {{media, {{"schema", std::move(schema)}}}}; }

Json answer(const char* description, Json of) {
  Json response{{"description", description}};
  if (!of.is_null()) response["content"] = std::move(of);
  return response;
}

const char* error_schema(ErrorShape shape) {
  switch (shape) {
    case ErrorShape::anthropic:
      return "AnthropicError";
    case ErrorShape::ollama:
      return "OllamaError";
    default:
      return "Error";
  }
}

const char* body_schema(std::string_view path) {
  if (path == "/v1/chat/completions") return "ChatCompletionRequest";
  if (path == "/v1/completions") return "CompletionRequest";
  if (path == "/v1/embeddings") return "EmbeddingsRequest";
  if (path == "/v1/responses") return "ResponsesRequest";
  if (path == "/v1/messages") return "AnthropicRequest";
  if (path == "/v1/messages/count_tokens") return "AnthropicCountRequest";
  if (path == "/api/chat") return "OllamaChatRequest";
  if (path == "/api/generate") return "OllamaGenerateRequest";
  if (path == "/api/embed") return "OllamaEmbedRequest";
  if (path == "/api/show") return "OllamaShowRequest";
  if (path == "/tokenize") return "TokenizeRequest";
  if (path == "/detokenize") return "DetokenizeRequest";
  if (path == "/apply-template") return "ApplyTemplateRequest";
  return nullptr;
}

Json success(std::string_view path) {
  if (path == "/v1/chat/completions" || path == "/v1/completions") {
    const bool chat = path == "/v1/chat/completions";
    Json both = content("application/json", reference(chat ? "ChatCompletion" : "Completion"));
    both["text/event-stream"] = {{"schema", {{"type", "string"}}}};
    return answer("The answer; with stream, server-sent events that end with [DONE].", std::move(both));
  }
  const auto either = [](const char* schema, const char* stream) {
    Json both = content("application/json", reference(schema));
    both[stream] = {{"schema", {{"type", "string"}}}};
    return answer("The answer; with stream, piece by piece.", std::move(both));
  };
  const auto one = [](const char* schema) {
    return answer("The answer.", content("application/json", reference(schema)));
  };
  if (path == "/v1/embeddings") return one("Embeddings");
  if (path == "/v1/responses") return either("Response", "text/event-stream");
  if (path == "/v1/messages") return either("AnthropicMessage", "text/event-stream");
  if (path == "/v1/messages/count_tokens") return one("AnthropicCount");
  if (path == "/api/chat") return either("OllamaChat", "application/x-ndjson");
  if (path == "/api/generate") return either("OllamaGenerate", "application/x-ndjson");
  if (path == "/api/embed") return one("OllamaEmbed");
  if (path == "/tokenize") return answer("The ids.", content("application/json", reference("Tokens")));
  if (path == "/detokenize" || path == "/apply-template")
    return answer("The text.", content("application/json", reference("Prompt")));
  if (path == "/v1/models") return answer("The list.", content("application/json", reference("ModelList")));
  if (path == "/v1/models/{model}")
    return answer("The model.", content("application/json", reference("Model")));
  if (path == "/engine/events")
    return answer("Events, until the client leaves.", content("text/event-stream", {{"type", "string"}}));
  if (path == "/metrics") return answer("The text.", content("text/plain", {{"type", "string"}}));
  if (path == "/health") return answer("Ready.", content("application/json", reference("Health")));
  return answer("The page.", content("application/json", {{"type", "object"}}));
}

Json operation(const Route& route) {
  const auto error_answer = [&](const char* description) {
    return answer(description, content("application/json", reference(error_schema(route.errors))));
  };
  Json responses{{"200", success(route.path)}};
  if (route.path == "/health") {
    responses["503"] = answer("Loading or draining.", content("application/json", reference("Health")));
  } else {
    responses["401"] = error_answer("The key is missing or wrong.");
    responses["503"] = error_answer("The model is loading, the server is full or going away: come again.");
  }
  Json operation{{"summary", route.summary}, {"operationId", ""}, {"responses", {}}};
  std::string id;
  for (const char c : route.path) id += c == '/' || c == '-' || c == '.' ? '_' : c;
  std::erase_if(id, [](char c) { return c == '{' || c == '}'; });
  operation["operationId"] = id.substr(1);
  if (const char* schema = body_schema(route.path)) {
    operation["requestBody"] = {{"required", true},
                                {"content", content("application/json", reference(schema))}};
    responses["400"] = error_answer("A field is unknown, of a wrong type or out of range, or does not fit.");
    responses["404"] = error_answer("The model that is named is not served here.");
    responses["408"] = error_answer("The body took too long to arrive.");
    responses["413"] = error_answer("The body is too long.");
    responses["415"] = error_answer("The body is not JSON.");
    if (generation_reader(route.path) != nullptr) {
      responses["429"] = error_answer("The queue is full; Retry-After says when to come again.");
      responses["500"] = error_answer("The model or the server failed.");
      responses["504"] = error_answer("The answer took longer than it may.");
    }
  }
  if (route.path == "/v1/models/{model}") {
    responses["404"] = error_answer("There is no such model here.");
    operation["parameters"] = Json::array({{{"name", "model"},
                                            {"in", "path"},
                                            {"required", true},
                                            {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  }
  operation["responses"] = std::move(responses);
  if (!route.needs_key) operation["security"] = Json::array();
  return operation;
}

Json object_with(Json properties) {
  Json required = Json::array();
  for (const auto& [name, schema] : properties.items()) required.push_back(name);
  return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

Json typed(const char* type) { return {{"type", type}}; }
Json null_or(const char* type) { return {{"type", Json::array({type, "null"})}}; }
Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json answer_schema(bool chat) {
  const Json finish{{"enum", Json::array({"stop", "length"})}};
  Json choice =
      object_with({{"index", typed("integer")}, {"logprobs", null_or("object")}, {"finish_reason", finish}});
  if (chat) {
    choice["properties"]["message"] = object_with({{"role", {{"enum", Json::array({"assistant"})}}},
                                                   {"content", null_or("string")},
                                                   {"refusal", null_or("string")}});
    choice["properties"]["message"]["properties"]["reasoning_content"] = typed("string");
    choice["required"].push_back("message");
  } else {
    choice["properties"]["text"] = typed("string");
    choice["required"].push_back("text");
  }
  return object_with({{"id", typed("string")},
                      {"object", {{"enum", Json::array({chat ? "chat.completion" : "text_completion"})}}},
                      {"created", typed("integer")},
                      {"model", typed("string")},
                      {"choices", list_of(std::move(choice))},
                      {"usage", reference("Usage")},
                      {"timings", typed("object")}});
}

/// What the other APIs answer.
void add_other_apis(Json& all) {
  all["AnthropicError"] =
      object_with({{"type", {{"enum", Json::array({"error"})}}},
                   {"error", object_with({{"type", typed("string")}, {"message", typed("string")}})}});
  all["OllamaError"] = object_with({{"error", typed("string")}});
  all["Embeddings"] = object_with(
      {{"object", {{"enum", Json::array({"list"})}}},
       {"data", list_of(object_with({{"object", typed("string")},
                                     {"index", typed("integer")},
                                     {"embedding", {{"type", {"array", "string"}}}}}))},
       {"model", typed("string")},
       {"usage", object_with({{"prompt_tokens", typed("integer")}, {"total_tokens", typed("integer")}})}});
  all["Response"] = object_with({{"id", typed("string")},
                                 {"object", {{"enum", Json::array({"response"})}}},
                                 {"created_at", typed("integer")},
                                 {"status", {{"enum", Json::array({"completed", "incomplete"})}}},
                                 {"model", typed("string")},
                                 {"output", list_of(typed("object"))},
                                 {"usage", typed("object")}});
  all["AnthropicMessage"] = object_with(
      {{"id", typed("string")},
       {"type", {{"enum", Json::array({"message"})}}},
       {"role", {{"enum", Json::array({"assistant"})}}},
       {"model", typed("string")},
       {"content", list_of(typed("object"))},
       {"stop_reason", {{"enum", Json::array({"end_turn", "max_tokens", "stop_sequence", "tool_use"})}}},
       {"stop_sequence", null_or("string")},
       {"usage", typed("object")}});
  all["AnthropicCount"] = object_with({{"input_tokens", typed("integer")}});
  const Json line{{"model", typed("string")},
                  {"created_at", typed("string")},
                  {"done", typed("boolean")},
                  {"done_reason", {{"enum", Json::array({"stop", "length", "load"})}}}};
  all["OllamaChat"] = object_with(line);
  all["OllamaChat"]["properties"]["message"] = typed("object");
  all["OllamaGenerate"] = object_with(line);
  all["OllamaGenerate"]["properties"]["response"] = typed("string");
  all["OllamaEmbed"] = object_with({{"model", typed("string")},
                                    {"embeddings", list_of(list_of(typed("number")))},
                                    {"prompt_eval_count", typed("integer")}});
}

Json schemas() {
  Json all{
      {"ChatCompletionRequest", chat_fields()},         {"CompletionRequest", completion_fields()},
      {"EmbeddingsRequest", embeddings_fields()},       {"ResponsesRequest", responses_fields()},
      {"AnthropicRequest", anthropic_fields()},         {"AnthropicCountRequest", anthropic_count_fields()},
      {"OllamaChatRequest", ollama_chat_fields()},      {"OllamaGenerateRequest", ollama_generate_fields()},
      {"OllamaEmbedRequest", ollama_embed_fields()},    {"OllamaShowRequest", ollama_show_fields()},
      {"TokenizeRequest", tokenize_fields()},           {"DetokenizeRequest", detokenize_fields()},
      {"ApplyTemplateRequest", apply_template_fields()}};
  all["ChatCompletion"] = answer_schema(true);
  all["Completion"] = answer_schema(false);
  all["Usage"] = object_with({{"prompt_tokens", typed("integer")},
                              {"completion_tokens", typed("integer")},
                              {"total_tokens", typed("integer")},
                              {"prompt_tokens_details", object_with({{"cached_tokens", typed("integer")}})}});
  all["Tokens"] = object_with({{"count", typed("integer")},
                               {"max_model_len", typed("integer")},
                               {"tokens", list_of(typed("integer"))}});
  all["Prompt"] = object_with({{"prompt", typed("string")}});
  all["Model"] = object_with({{"id", typed("string")},
                              {"object", typed("string")},
                              {"created", typed("integer")},
                              {"owned_by", typed("string")}});
  all["ModelList"] = object_with({{"object", typed("string")}, {"data", list_of(reference("Model"))}});
  all["Health"] = object_with({{"status", {{"enum", Json::array({"ok", "loading", "draining"})}}}});
  all["Error"] = object_with({{"error", object_with({{"message", typed("string")},
                                                     {"type", typed("string")},
                                                     {"param", null_or("string")},
                                                     {"code", null_or("string")}})}});
  add_other_apis(all);
  return all;
}

Json make_document() {
  Json paths = Json::object();
  for (const Route& route : routes())
    paths[std::string(route.path)][route.method == "GET" ? "get" : "post"] = operation(route);
  Json document{{"openapi", "3.1.0"}};
  document["info"] = {
      {"title", "qwench"},
      {"version", kVersion},
      {"description",
       "OpenAI's, Anthropic's and Ollama's APIs over a model that runs here. Fields that are not listed are "
       "refused."}};
  document["paths"] = std::move(paths);
  document["components"] = {{"schemas", schemas()},
                            {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}};
  document["security"] = Json::array({Json{{"key", Json::array()}}, Json::object()});
  return document;
}

}  // namespace

const Json& openapi_document() {
  static const Json document = make_document();
  return document;
}

}  // namespace qwench::server
