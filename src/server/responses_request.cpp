#include "server/responses_request.h"

#include <fmt/format.h>

#include <utility>

#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/chat_translation.h"
#include "server/json_schema.h"
#include "server/request_fields.h"
#include "server/responses_answer.h"

namespace qwench::server {
namespace {

const Json& required_field(const Json& item, const char* field, const std::string& where) {
  const Json* value = given(item, field);
  if (value == nullptr) refuse_field(where + "." + field, "this field is missing");
  return *value;
}

/// Text, or parts of it, which are joined by newlines.
std::string text_of_parts(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    if (i > 0) joined += '\n';
    const char* field = part["type"] == "refusal" ? "refusal" : "text";
    joined += required_field(part, field, fmt::format("{}[{}]", where, i)).get<std::string>();
  }
  return joined;
}

/// Makes messages of items. What the assistant thought, said and called in a row is one message of a chat.
class MessageList {
 public:
  explicit MessageList(Json& messages) : messages_(messages) {}

  void add(const Json& item, const std::string& where) {
    const Json* type = given(item, "type");
    const std::string kind = type == nullptr ? "message" : type->get<std::string>();
    if (kind == "message") {
      add_message(item, where);
    } else if (kind == "reasoning") {
      const Json* content = given(item, "content");
      const Json* source = content != nullptr && !content->empty() ? content : given(item, "summary");
      if (source == nullptr || source->empty()) return;
      // Reasoning begins an answer of its own where the one before has said or called something.
      if (open_ && (said_ || called_)) open_ = false;
      std::string text = text_of_parts(*source, where + (source == content ? ".content" : ".summary"));
      Json& message = assistant();
      if (message.contains("reasoning_content"))
        text = message["reasoning_content"].get<std::string>() + "\n" + text;
      message["reasoning_content"] = text;
    } else if (kind == "function_call") {
      Json& message = assistant();
      message["tool_calls"].push_back({{"id", required_field(item, "call_id", where)},
                                       {"type", "function"},
                                       {"function",
                                        {{"name", required_field(item, "name", where)},
                                         {"arguments", required_field(item, "arguments", where)}}}});
      called_ = true;
    } else {
      open_ = false;
      messages_.push_back(
          {{"role", "tool"},
           {"tool_call_id", required_field(item, "call_id", where)},
           {"content", text_of_parts(required_field(item, "output", where), where + ".output")}});
    }
  }

 private:
  void add_message(const Json& item, const std::string& where) {
    const std::string role = required_field(item, "role", where).get<std::string>();
    const std::string text = text_of_parts(required_field(item, "content", where), where + ".content");
    if (role == "assistant") {
      if (open_ && (said_ || called_)) open_ = false;
      assistant()["content"] = text;
      said_ = true;
    } else {
      open_ = false;
      messages_.push_back({{"role", role}, {"content", text}});
    }
  }

  Json& assistant() {
    if (!open_) messages_.push_back({{"role", "assistant"}, {"content", ""}});
    if (!std::exchange(open_, true)) said_ = called_ = false;
    return messages_.back();
  }

  Json& messages_;
  bool open_ = false;  // the last message is the assistant's, and more of it may come
  bool said_ = false;
  bool called_ = false;
};

Json chat_tool_choice(const Json& choice) {
  if (choice["type"] == "function") return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
  Json tools = Json::array();
  for (const Json& tool : choice["tools"]) tools.push_back(chat_tool_choice(tool));
  return {{"type", "allowed_tools"},
          {"allowed_tools", {{"mode", choice["mode"]}, {"tools", std::move(tools)}}}};
}

void add_response_tools(const Json& body, Json& chat) {
  const Json* tools = given(body, "tools");
  if (tools != nullptr && !tools->empty()) {
    Json& list = chat["tools"] = Json::array();
    for (const Json& tool : *tools) {
      Json function = Json::object();
      for (const char* field : {"name", "description", "parameters", "strict"})
        copy_field(tool, field, function);
      list.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }
  const bool has_tools = tools != nullptr && !tools->empty();
  if (const Json* choice = given(body, "tool_choice");
      choice != nullptr && (has_tools || *choice != "auto")) {
    chat["tool_choice"] = choice->is_string() ? *choice : chat_tool_choice(*choice);
  }
  copy_field(body, "parallel_tool_calls", chat);
}

void add_format(const Json& body, Json& chat) {
  const Json* text = given(body, "text");
  const Json* format = text == nullptr ? nullptr : given(*text, "format");
  if (format == nullptr) return;
  Json& wanted = chat["response_format"] = {{"type", (*format)["type"]}};
  if ((*format)["type"] != "json_schema") return;
  Json& schema = wanted["json_schema"] = Json::object();
  for (const char* field : {"name", "description", "schema", "strict"}) copy_field(*format, field, schema);
}

constexpr FieldName kResponsesNames[] = {{"max_completion_tokens", "max_output_tokens"},
                                         {".function.", "."},
                                         {".allowed_tools.", "."},
                                         {"response_format", "text.format"}};

}  // namespace

GenerationBody read_responses_body(const Json& body, const ServedModel&) {
  check_schema(body, responses_fields(), "");
  Json chat{{"messages", Json::array()}};
  copy_field(body, "model", chat);
  if (const Json* instructions = given(body, "instructions"))
    chat["messages"].push_back({{"role", "system"}, {"content", *instructions}});
  const Json& input = body["input"];
  if (input.is_string()) {
    chat["messages"].push_back({{"role", "user"}, {"content", input}});
  } else {
    MessageList list(chat["messages"]);
    for (size_t i = 0; i < input.size(); ++i) list.add(input[i], fmt::format("input[{}]", i));
  }
  if (chat["messages"].empty()) refuse_field("input", "there is nothing in it");
  add_response_tools(body, chat);
  add_format(body, chat);
  copy_field(body, "max_output_tokens", chat, "max_completion_tokens");
  for (const char* field : {"temperature", "top_p", "stream"}) copy_field(body, field, chat);
  const Json* reasoning = given(body, "reasoning");
  if (const Json* effort = reasoning == nullptr ? nullptr : given(*reasoning, "effort"))
    chat["chat_template_kwargs"] = {{"enable_thinking", *effort != "none" && *effort != "minimal"}};
  GenerationBody read = read_translated_chat(chat, kResponsesNames);
  read.id_prefix = "resp_";
  read.make_answer = [echo = echoed_fields(body)](AnswerHead head,
                                                  const std::vector<PromptChoices>& prompts) {
    return std::make_unique<ResponsesAnswer>(std::move(head), prompts.front(), echo);
  };
  return read;
}

}  // namespace qwench::server
