#include "server/ollama_request.h"

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/chat_translation.h"
#include "server/json_schema.h"
#include "server/ollama_answer.h"
#include "server/ollama_common.h"

namespace qwench::server {
namespace {

constexpr FieldName kOllamaNames[] = {{"max_completion_tokens", "options.num_predict"},
                                      {"max_tokens", "options.num_predict"},
                                      {"repetition_penalty", "options.repeat_penalty"},
                                      {"response_format", "format"}};

bool is_given_text(const Json& body, const char* field) {
  const Json* value = given(body, field);
  return value != nullptr && !value->get_ref<const std::string&>().empty();
}

void refuse_text(const Json& body, const char* field, const char* sentence) {
  if (is_given_text(body, field)) refuse_field(field, sentence);
}

bool streams(const Json& body) {
  const Json* stream = given(body, "stream");
  return stream == nullptr || stream->get<bool>();
}

/// Ollama's options and what stands beside them, as a chat body has them.
void add_options(const Json& body, const ServedModel& model, Json& chat) {
  chat["stream"] = streams(body);
  if (const Json* think = given(body, "think"))
    chat["chat_template_kwargs"] = {{"enable_thinking", !think->is_boolean() || think->get<bool>()}};
  if (const Json* format = given(body, "format"); format != nullptr && *format != "") {
    if (format->is_string() && *format != "json")
      refuse_field("format", fmt::format("found {}, expected \"json\" or a JSON Schema", to_line(*format)));
    chat["response_format"] =
        format->is_string()
            ? Json{{"type", "json_object"}}
            : Json{{"type", "json_schema"}, {"json_schema", {{"name", "format"}, {"schema", *format}}}};
  }
  const Json* options = given(body, "options");
  if (options == nullptr) return;
  for (const char* field :
       {"temperature", "top_k", "top_p", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty"})
    copy_field(*options, field, chat);
  copy_field(*options, "repeat_penalty", chat, "repetition_penalty");
  if (const Json* most = given(*options, "num_predict")) {
    if (*most == 0) refuse_field("options.num_predict", "found 0, expected at least 1, or -1");
    if (most->get<double>() > 0) chat["max_completion_tokens"] = *most;
  }
  if (const Json* context = given(*options, "num_ctx");
      context != nullptr && context->get<double>() > model.context)
    refuse_field("options.num_ctx",
                 fmt::format("found {}, but the server's context is {}; start it with a larger -c",
                             to_line(*context), model.context));
}

GenerationBody loaded(const Json& body, bool chat) {
  GenerationBody read;
  if (const Json* name = given(body, "model")) read.model = ollama_model_name(name->get<std::string>());
  read.at_once = [chat](const AnswerHead& head) { return ollama_load_line(head, chat); };
  return read;
}

GenerationBody with_answer(GenerationBody read, bool chat) {
  read.model = ollama_model_name(read.model);
  read.make_answer = [chat](AnswerHead head, const std::vector<PromptChoices>& prompts) {
    return std::make_unique<OllamaAnswer>(std::move(head), prompts.front(), chat);
  };
  return read;
}

Json read_ollama_message(const Json& message) {
  Json read{{"role", message["role"]}, {"content", ""}};
  copy_field(message, "content", read);
  copy_field(message, "thinking", read, "reasoning_content");
  copy_field(message, "tool_name", read, "name");
  copy_field(message, "tool_call_id", read);
  const Json* calls = given(message, "tool_calls");
  if (calls == nullptr || calls->empty()) return read;
  Json& list = read["tool_calls"] = Json::array();
  for (const Json& call : *calls) {
    const Json& function = call["function"];
    Json made{{"type", "function"},
              {"function", {{"name", function["name"]}, {"arguments", to_line(function["arguments"])}}}};
    copy_field(call, "id", made);
    list.push_back(std::move(made));
  }
  return read;
}

/// A prompt that is not put through the chat template.
GenerationBody read_raw(const Json& body, const ServedModel& model) {
  refuse_text(body, "system", "only without raw: a raw prompt is all that the model reads");
  if (given(body, "think") != nullptr)
    refuse_field("think", "only without raw: the chat template asks for it");
  Json completion{{"prompt", body["prompt"]}};
  copy_field(body, "model", completion);
  add_options(body, model, completion);
  const auto most = completion.find("max_completion_tokens");
  const int limit = most == completion.end() ? -1 : static_cast<int>(most->get<double>());
  completion.erase("max_completion_tokens");
  GenerationBody read = read_completion_body(completion);
  read.settings.stop.max_tokens = limit;
  return with_answer(std::move(read), false);
}

}  // namespace

GenerationBody read_ollama_chat_body(const Json& body, const ServedModel& model) {
  check_schema(body, ollama_chat_fields(), "");
  const Json* messages = given(body, "messages");
  if (messages == nullptr || messages->empty()) return loaded(body, true);
  Json chat{{"messages", Json::array()}};
  copy_field(body, "model", chat);
  for (const Json& message : *messages) chat["messages"].push_back(read_ollama_message(message));
  if (const Json* tools = given(body, "tools"); tools != nullptr && !tools->empty()) {
    chat["tools"] = *tools;
    for (Json& tool : chat["tools"]) tool["type"] = "function";
  }
  add_options(body, model, chat);
  return with_answer(read_translated_chat(chat, kOllamaNames), true);
}

GenerationBody read_ollama_generate_body(const Json& body, const ServedModel& model) {
  check_schema(body, ollama_generate_fields(), "");
  refuse_text(body, "template", "the model's own chat template is used; a raw prompt can be of any form");
  refuse_text(body, "suffix",
              "not supported: put the model's own fill-in-the-middle tokens into a raw prompt");
  if (!is_given_text(body, "prompt")) return loaded(body, false);
  const Json* raw = given(body, "raw");
  if (raw != nullptr && raw->get<bool>()) return read_raw(body, model);
  Json chat{{"messages", Json::array()}};
  copy_field(body, "model", chat);
  if (is_given_text(body, "system"))
    chat["messages"].push_back({{"role", "system"}, {"content", body["system"]}});
  chat["messages"].push_back({{"role", "user"}, {"content", body["prompt"]}});
  add_options(body, model, chat);
  return with_answer(read_translated_chat(chat, kOllamaNames), false);
}

std::string read_ollama_show_body(const Json& body) {
  check_schema(body, ollama_show_fields(), "");
  for (const char* field : {"model", "name"}) {
    if (const Json* name = given(body, field)) return ollama_model_name(name->get<std::string>());
  }
  refuse_field("model", "this field is missing");
}

}  // namespace qwench::server
