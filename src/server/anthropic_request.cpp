#include "server/anthropic_request.h"

#include <fmt/format.h>

#include <utility>

#include "server/anthropic_answer.h"
#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/chat_translation.h"
#include "server/json_schema.h"
#include "server/request_fields.h"

namespace qwench::server {
namespace {

/// A block's field that its type must have.
const Json& required_of(const Json& block, const char* field, const std::string& where) {
  const Json* value = given(block, field);
  if (value == nullptr) refuse_field(where + "." + field, "this field is missing");
  return *value;
}

/// Text, or blocks of it, which are joined by newlines.
std::string text_of_blocks(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string joined;
  for (const Json& block : content) {
    if (!joined.empty()) joined += '\n';
    joined += block["text"].get<std::string>();
  }
  return joined;
}

Json tool_message(const Json& block, const std::string& where) {
  const Json* content = given(block, "content");
  std::string text = content == nullptr ? "" : text_of_blocks(*content);
  const Json* failed = given(block, "is_error");
  if (failed != nullptr && failed->get<bool>()) text.insert(0, "Error: ");
  return {{"role", "tool"}, {"tool_call_id", required_of(block, "tool_use_id", where)}, {"content", text}};
}

Json tool_call(const Json& block, const std::string& where) {
  return {{"id", required_of(block, "id", where)},
          {"type", "function"},
          {"function",
           {{"name", required_of(block, "name", where)},
            {"arguments", to_line(required_of(block, "input", where))}}}};
}

/// A message of one role; results of tools become messages of their own, before the text that follows them.
void add_message(const Json& message, const std::string& where, Json& messages) {
  const bool assistant = message["role"] == "assistant";
  const Json& content = message["content"];
  if (content.is_string()) {
    messages.push_back({{"role", message["role"]}, {"content", content}});
    return;
  }
  std::string text;
  std::string thinking;
  Json calls = Json::array();
  bool spoke = false;
  const auto flush = [&] {
    if (spoke) messages.push_back({{"role", "user"}, {"content", std::exchange(text, {})}});
    spoke = false;
  };
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& block = content[i];
    const std::string at = fmt::format("{}.content[{}]", where, i);
    const std::string type = block["type"].get<std::string>();
    if ((type == "tool_result") == assistant && type != "text")
      refuse_field(
          at, fmt::format("a message of {} cannot have {}", assistant ? "the assistant" : "the user", type));
    if (type == "text") {
      if (spoke) text += '\n';
      text += required_of(block, "text", at).get<std::string>();
      spoke = true;
    } else if (type == "thinking") {
      thinking += required_of(block, "thinking", at).get<std::string>();
    } else if (type == "tool_use") {
      calls.push_back(tool_call(block, at));
    } else {
      flush();
      messages.push_back(tool_message(block, at));
    }
  }
  if (!assistant) return flush();
  Json spoken{{"role", "assistant"}, {"content", text}};
  if (!thinking.empty()) spoken["reasoning_content"] = thinking;
  if (!calls.empty()) spoken["tool_calls"] = std::move(calls);
  messages.push_back(std::move(spoken));
}

void add_anthropic_tools(const Json& body, Json& chat) {
  const Json* tools = given(body, "tools");
  if (tools != nullptr && !tools->empty()) {
    Json& list = chat["tools"] = Json::array();
    for (const Json& tool : *tools) {
      Json function{{"name", tool["name"]}};
      if (const Json* description = given(tool, "description")) function["description"] = *description;
      function["parameters"] = tool["input_schema"];
      copy_field(tool, "strict", function);
      list.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }
  const Json* choice = given(body, "tool_choice");
  if (choice == nullptr) return;
  const std::string type = (*choice)["type"].get<std::string>();
  if (type == "tool") {
    chat["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", required_of(*choice, "name", "tool_choice")}}}};
  } else {
    chat["tool_choice"] = type == "any" ? "required" : type;
  }
  if (const Json* lone = given(*choice, "disable_parallel_tool_use"))
    chat["parallel_tool_calls"] = !lone->get<bool>();
}

void add_output_format(const Json& body, Json& chat) {
  const Json* config = given(body, "output_config");
  const Json* format = config == nullptr ? nullptr : given(*config, "format");
  const Json* by_old_name = given(body, "output_format");
  if (format != nullptr && by_old_name != nullptr)
    refuse_field("output_format", "output_config.format, its newer name, is given too");
  if (format == nullptr) format = by_old_name;
  if (format == nullptr) return;
  chat["response_format"] = {{"type", "json_schema"},
                             {"json_schema", {{"name", "format"}, {"schema", (*format)["schema"]}}}};
}

bool wants_thinking(const Json& body) {
  const Json* thinking = given(body, "thinking");
  return thinking != nullptr && (*thinking)["type"] != "disabled";
}

Json translated(const Json& body) {
  Json chat{{"messages", Json::array()}};
  copy_field(body, "model", chat);
  Json& messages = chat["messages"];
  if (const Json* system = given(body, "system")) {
    const std::string text = text_of_blocks(*system);
    if (!text.empty()) messages.push_back({{"role", "system"}, {"content", text}});
  }
  for (size_t i = 0; i < body["messages"].size(); ++i)
    add_message(body["messages"][i], fmt::format("messages[{}]", i), messages);
  if (messages.empty()) refuse_field("messages", "there is nothing in them");
  if (body["messages"].back()["role"] == "assistant") chat["continue_final_message"] = true;
  add_anthropic_tools(body, chat);
  add_output_format(body, chat);
  chat["chat_template_kwargs"] = {{"enable_thinking", wants_thinking(body)}};
  return chat;
}

constexpr FieldName kAnthropicNames[] = {{"max_completion_tokens", "max_tokens"},
                                         {"stop", "stop_sequences"},
                                         {"response_format", "output_config.format"},
                                         {".function.parameters", ".input_schema"},
                                         {".function.name", ".name"},
                                         {"parallel_tool_calls", "tool_choice"}};

/// A chat body made of one of Anthropic's. Where its last message is the assistant's, the answer goes on.
GenerationBody read_anthropic_chat(const Json& chat) {
  GenerationBody read = read_translated_chat(chat, kAnthropicNames);
  read.messages.continues_by = "messages";
  return read;
}

}  // namespace

GenerationBody read_anthropic_body(const Json& body, const ServedModel&) {
  check_schema(body, anthropic_fields(), "");
  if (const Json* thinking = given(body, "thinking")) {
    const Json* budget = given(*thinking, "budget_tokens");
    if (budget != nullptr && budget->get<double>() >= body["max_tokens"].get<double>())
      refuse_field("thinking.budget_tokens", "expected fewer than max_tokens");
  }
  Json chat = translated(body);
  chat["max_completion_tokens"] = body["max_tokens"];
  copy_field(body, "stop_sequences", chat, "stop");
  for (const char* field : {"temperature", "top_p", "top_k", "stream"}) copy_field(body, field, chat);
  GenerationBody read = read_anthropic_chat(chat);
  read.id_prefix = "msg_";
  read.make_answer = [thinks = wants_thinking(body)](AnswerHead head,
                                                     const std::vector<PromptChoices>& prompts) {
    return std::make_unique<AnthropicAnswer>(std::move(head), prompts.front(), thinks);
  };
  return read;
}

GenerationBody read_anthropic_count_body(const Json& body, const ServedModel&) {
  check_schema(body, anthropic_count_fields(), "");
  return read_anthropic_chat(translated(body));
}

}  // namespace qwench::server
