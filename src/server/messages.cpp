#include "server/messages.h"

#include <fmt/format.h>

#include <set>

#include "core/large_integers.h"
#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/tool_use.h"

namespace qwench::server {
namespace {

std::string part_text(const Json& part, const std::string& where, bool assistant) {
  const std::string type = part["type"].get<std::string>();
  if (type == "refusal" && !assistant) refuse_field(where, "only an assistant's message may have a refusal");
  const Json* text = given(part, type.c_str());
  if (text == nullptr || part.size() != 2)
    refuse_field(where, fmt::format("a part of type {} has a field {} and no other", type, type));
  return text->get<std::string>();
}

/// A content of parts as one text: joined by newlines, as other servers of such templates do it.
Json content_text(const Json& content, const std::string& where, bool assistant) {
  if (!content.is_array()) return content;
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    if (i > 0) joined += '\n';
    joined += part_text(content[i], fmt::format("{}[{}]", where, i), assistant);
  }
  return joined;
}

/// Templates take a call's arguments as an object; the API carries them as a string of JSON. A string that is
/// none, such as a model wrote it, reaches the template as it is.
Json read_tool_calls(const Json& calls, const std::string& where) {
  Json read = calls;
  for (size_t i = 0; i < read.size(); ++i) {
    Json& arguments = read[i]["function"]["arguments"];
    const std::string text = arguments.get<std::string>();
    if (text.empty()) {
      arguments = Json::object();
      continue;
    }
    try {
      arguments = parse_json_exactly(text, "the arguments", 64);
    } catch (const Error&) {
      continue;
    }
    if (!arguments.is_object())
      refuse_field(fmt::format("{}[{}].function.arguments", where, i),
                   "expected a string that holds a JSON object");
  }
  return read;
}

Json read_message(const Json& message, const std::string& where) {
  const std::string role = message["role"].get<std::string>();
  const bool assistant = role == "assistant";
  Json read{{"role", role == "developer" ? "system" : role}};
  for (const char* field : {"tool_calls", "reasoning_content", "refusal"}) {
    if (given(message, field) != nullptr && !assistant)
      refuse_field(where + "." + field,
                   fmt::format("only an assistant's message may have it, not one of {}", role));
  }
  if (given(message, "tool_call_id") != nullptr && role != "tool")
    refuse_field(where + ".tool_call_id", "only a tool's message may have it");

  const Json* calls = given(message, "tool_calls");
  const Json* refusal = given(message, "refusal");
  if (const Json* content = given(message, "content")) {
    read["content"] = content_text(*content, where + ".content", assistant);
  } else if (refusal != nullptr) {
    read["content"] = *refusal;
  } else if (calls != nullptr && !calls->empty()) {
    read["content"] = "";
  } else {
    refuse_field(where + ".content", "this field is missing");
  }
  if (calls != nullptr && !calls->empty())
    read["tool_calls"] = read_tool_calls(*calls, where + ".tool_calls");
  for (const char* field : {"name", "reasoning_content", "tool_call_id"}) {
    if (const Json* value = given(message, field)) read[field] = *value;
  }
  return read;
}

}  // namespace

void check_tool_call_ids(const Json& messages) {
  std::set<std::string> calls;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (const Json* made = given(messages[i], "tool_calls")) {
      for (const Json& call : *made) {
        const Json* id = given(call, "id");
        if (id == nullptr) return;  // what follows may answer it
        calls.insert(id->get<std::string>());
      }
    }
    const Json* answered = given(messages[i], "tool_call_id");
    if (answered != nullptr && calls.count(answered->get<std::string>()) == 0) {
      refuse_field(
          fmt::format("messages[{}].tool_call_id", i),
          fmt::format("no call of an assistant's message before it has the id {}", to_line(*answered)));
    }
  }
}

ChatPrompt read_chat_prompt(const Json& body) {
  ChatPrompt prompt;
  const Json& messages = body["messages"];
  for (size_t i = 0; i < messages.size(); ++i)
    prompt.input.messages.push_back(read_message(messages[i], fmt::format("messages[{}]", i)));
  prompt.input.tools = read_tools(body);
  if (const Json* kwargs = given(body, "chat_template_kwargs")) prompt.input.kwargs = *kwargs;
  const Json* goes_on = given(body, "continue_final_message");
  prompt.continue_final_message = goes_on != nullptr && goes_on->get<bool>();
  const Json* generation_prompt = given(body, "add_generation_prompt");
  prompt.input.add_generation_prompt =
      generation_prompt != nullptr ? generation_prompt->get<bool>() : !prompt.continue_final_message;
  if (prompt.continue_final_message && prompt.input.add_generation_prompt) {
    refuse_field(
        "continue_final_message",
        "it does not go with add_generation_prompt: either the last message goes on, or a new one begins");
  }
  return prompt;
}

}  // namespace qwench::server
