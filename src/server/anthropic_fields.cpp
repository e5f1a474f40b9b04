#include "server/anthropic_request.h"
#include "server/field_schemas.h"
#include "server/request_fields.h"
#include "server/tool_fields.h"

namespace qwench::server {

using namespace fields;  // NOLINT(google-build-using-namespace): short words of one table

namespace {

constexpr int kMaxBlocks = 1024;

Json cache_control_field() {
  return without_effect({"object", "null"},
                        "Without effect: what prompts have in common is cached without being asked.");
}

Json text_block() {
  return object_of({{"type", {{"enum", {"text"}}}},
                    {"text", text("The text.")},
                    {"cache_control", cache_control_field()},
                    {"citations", without_effect({"array", "null"}, "Without effect.")}},
                   {"type", "text"});
}

Json text_or_blocks(const char* description) {
  return either({{{"type", "string"}},
                 {{"type", "array"}, {"maxItems", kMaxBlocks}, {"items", text_block()}},
                 {{"type", "null"}}},
                description);
}

Json content_block() {
  return object_of(
      {{"type", described({{"enum", {"text", "thinking", "tool_use", "tool_result"}}},
                          "Images, documents and the results of Anthropic's own tools are not supported.")},
       {"text", text("Of text.")},
       {"citations", without_effect({"array", "null"}, "Without effect.")},
       {"thinking", text("Of thinking: what the assistant thought, handed to the chat template.")},
       {"signature", text("Of thinking: without effect.")},
       {"id", text("Of tool_use.")},
       {"name", text("Of tool_use.")},
       {"input", described({{"type", "object"}}, "Of tool_use: the call's arguments.")},
       {"tool_use_id", text("Of tool_result.")},
       {"content", text_or_blocks("Of tool_result: text, or blocks of text.")},
       {"is_error", described({{"type", {"boolean", "null"}}},
                              "Of tool_result: the model reads \"Error: \" before the text.")},
       {"cache_control", cache_control_field()}},
      {"type"});
}

Json anthropic_messages_field() {
  const Json message = object_of(
      {{"role", {{"enum", {"user", "assistant"}}}},
       {"content", either({{{"type", "string"}},
                           {{"type", "array"}, {"maxItems", kMaxBlocks}, {"items", content_block()}}},
                          "Text, or blocks.")}},
      {"role", "content"});
  return described(
      {{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxMessages}, {"items", message}},
      "The conversation so far. Where the last message is the assistant's, the answer goes on with it.");
}

Json anthropic_tools_field() {
  return array_of(
      object_of(
          {{"name", tool_name_field(kLongestApiToolName)},
           {"description", nullable("string", "What it does, for the model.")},
           {"input_schema", described({{"type", "object"}}, "JSON Schema of its arguments.")},
           {"type", described({{"enum", {"custom", nullptr}}}, "Anthropic's own tools are not supported.")},
           {"strict", boolean(false, "Calls keep to the schema, token by token.")},
           {"cache_control", cache_control_field()}},
          {"name", "input_schema"}),
      kMaxTools, "What the model may call.");
}

Json tool_choice_field() {
  return described({{"type", {"object", "null"}},
                    {"properties",
                     {{"type", {{"enum", {"auto", "any", "tool", "none"}}}},
                      {"name", text("Of tool: which one.")},
                      {"disable_parallel_tool_use",
                       described({{"type", {"boolean", "null"}}}, "At most one call in an answer.")}}},
                    {"required", {"type"}},
                    {"additionalProperties", false}},
                   "Whether the model may (auto), must (any, or one by name: tool) or must not (none) call.");
}

Json thinking_field() {
  return described(
      {{"type", {"object", "null"}},
       {"properties",
        {{"type", {{"enum", {"enabled", "adaptive", "disabled"}}}},
         {"budget_tokens",
          whole(1024, kLargestInt,
                "Accepted, as clients must send it, but no limit: thinking ends where the model ends it, or "
                "with max_tokens.")},
         {"display", described({{"enum", {"summarized", nullptr}}}, "Thinking is given whole.")}}},
       {"required", {"type"}},
       {"additionalProperties", false}},
      "Whether a model that can do without thinks first, and the answer has its thinking; disabled when "
      "absent.");
}

Json output_format_field(const char* description) {
  return described({{"type", {"object", "null"}},
                    {"properties",
                     {{"type", {{"enum", {"json_schema"}}}},
                      {"schema", described({{"type", "object"}}, "A JSON Schema.")}}},
                    {"required", {"type", "schema"}},
                    {"additionalProperties", false}},
                   description);
}

Json output_config_field() {
  return described(
      {{"type", {"object", "null"}},
       {"properties",
        {{"format", output_format_field("What the text must be: JSON under a schema.")},
         {"effort", described({{"enum", {"low", "medium", "high", "xhigh", "max", nullptr}}},
                              "Accepted, but how long a model thinks is its own affair: see thinking.")}}},
       {"additionalProperties", false}},
      "The form of the answer's text. Where tools may be called, the answer is calls, or text of this form.");
}

Json prompt_fields() {
  return {{"model", model_field()},
          {"messages", anthropic_messages_field()},
          {"system", text_or_blocks("What the model is told before all else.")},
          {"tools", anthropic_tools_field()},
          {"tool_choice", tool_choice_field()},
          {"thinking", thinking_field()},
          {"output_config", output_config_field()},
          {"output_format", output_format_field("The older name of output_config.format.")},
          {"cache_control", cache_control_field()}};
}

Json make_anthropic_fields() {
  Json p = prompt_fields();
  p["max_tokens"] = described({{"type", "integer"}, {"minimum", 1}, {"maximum", kLargestInt}},
                              "The most tokens of an answer, its thinking included.");
  p["stop_sequences"] = array_of({{"type", "string"}, {"minLength", 1}, {"maxLength", 1024}}, kMaxStopStrings,
                                 "The text ends before the first of these.");
  p["temperature"] = number(0, 2, "0 is greedy. When absent, what the model's generation_config.json says.");
  p["top_p"] = described({{"type", {"number", "null"}}, {"exclusiveMinimum", 0}, {"maximum", 1}},
                         "Keep the smallest set of tokens whose probability reaches it.");
  p["top_k"] = whole(0, kLargestInt, "Keep the k best tokens and their ties; 0 keeps all.");
  p["stream"] = boolean(false, "Answer by server-sent events as the text appears.");
  p["metadata"] = without_effect({"object", "null"}, "Without effect on answers, as in Anthropic's API.");
  p["service_tier"] = described({{"enum", {"auto", "standard_only", nullptr}}}, "There is one tier.");
  p["container"] = refused("containers are not supported; leave this field out");
  p["mcp_servers"] = refused("MCP servers are not supported here: let the client call them");
  p["context_management"] = refused("context_management is not supported; leave this field out");
  return object_of(std::move(p), {"messages", "max_tokens"});
}

}  // namespace

const Json& anthropic_fields() {
  static const Json fields = make_anthropic_fields();
  return fields;
}

const Json& anthropic_count_fields() {
  static const Json fields = object_of(prompt_fields(), {"messages"});
  return fields;
}

}  // namespace qwench::server
