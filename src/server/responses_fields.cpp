#include "server/field_schemas.h"
#include "server/request_fields.h"
#include "server/responses_request.h"
#include "server/tool_fields.h"

namespace qwench::server {

using namespace fields;  // NOLINT(google-build-using-namespace): short words of one table

namespace {

constexpr int kMaxParts = 1024;

Json parts(std::initializer_list<const char*> types, const char* description) {
  const Json part = object_of({{"type", {{"enum", Json(types)}}},
                               {"text", text("Of a text.")},
                               {"refusal", text("Of a refusal.")},
                               {"annotations", without_effect({"array", "null"}, "Without effect.")},
                               {"logprobs", without_effect({"array", "null"}, "Without effect.")}},
                              {"type"});
  return either({{{"type", "string"}},
                 {{"type", "array"}, {"maxItems", kMaxParts}, {"items", part}},
                 {{"type", "null"}}},
                description);
}

Json input_item() {
  return object_of(
      {{"type",
        described({{"enum", {"message", "function_call", "function_call_output", "reasoning"}}},
                  "message when absent. Items that are stored elsewhere, files, images and OpenAI's own "
                  "tools are not supported.")},
       {"id", without_effect({"string", "null"}, "Without effect: nothing is stored.")},
       {"status", without_effect({"string", "null"}, "Without effect.")},
       {"phase", without_effect({"string", "null"}, "Without effect.")},
       {"role", {{"enum", {"user", "assistant", "system", "developer"}}}},
       {"content", parts({"input_text", "output_text", "text", "refusal", "reasoning_text"},
                         "Of a message, or of reasoning: text, or parts of text.")},
       {"summary", parts({"summary_text"}, "Of reasoning that has no content.")},
       {"encrypted_content",
        described({{"type", "null"}}, "encrypted reasoning cannot be read here; leave this field out")},
       {"call_id", text("Of a function's call and of its output.")},
       {"name", text("Of a function's call.")},
       {"arguments", text("Of a function's call: a string of JSON.")},
       {"output", parts({"input_text"}, "Of a function's call: what it gave.")}},
      {});
}

Json response_tools_field() {
  return array_of(
      object_of({{"type", described({{"enum", {"function"}}}, "OpenAI's own tools are not supported.")},
                 {"name", tool_name_field(kLongestApiToolName)},
                 {"description", nullable("string", "What it does, for the model.")},
                 {"parameters", nullable("object", "JSON Schema of its arguments.")},
                 {"strict", described({{"type", {"boolean", "null"}}}, "As in a chat's tools.")}},
                {"type", "name"}),
      kMaxTools, "What the model may call.");
}

Json response_tool_choice_field() {
  const Json named =
      object_of({{"type", {{"enum", {"function"}}}}, {"name", {{"type", "string"}}}}, {"type", "name"});
  return either(
      {{{"enum", {"none", "auto", "required", nullptr}}},
       named,
       object_of({{"type", {{"enum", {"allowed_tools"}}}},
                  {"mode", {{"enum", {"auto", "required"}}}},
                  {"tools", {{"type", "array"}, {"minItems", 1}, {"items", named}}}},
                 {"type", "mode", "tools"})},
      "Whether the model may, must or must not call, which function it must, or which ones it may or "
      "must: it is shown all.");
}

Json make_responses_fields() {
  constexpr const char* kStateless = "nothing is stored here: send the whole conversation as input";
  Json p{{"model", model_field()}};
  p["input"] =
      either({{{"type", "string"}},
              {{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxMessages}, {"items", input_item()}}},
             "A user's text, or the conversation so far.");
  p["instructions"] = nullable("string", "What the model is told before all else.");
  p["max_output_tokens"] = whole(1, kLargestInt, "The most tokens of an answer, its reasoning included.");
  p["temperature"] = number(0, 2, "0 is greedy. When absent, what the model's generation_config.json says.");
  p["top_p"] = described({{"type", {"number", "null"}}, {"exclusiveMinimum", 0}, {"maximum", 1}},
                         "Keep the smallest set of tokens whose probability reaches it.");
  p["stream"] = boolean(false, "Answer by server-sent events as the text appears.");
  p["stream_options"] =
      described({{"type", {"object", "null"}},
                 {"properties",
                  {{"include_obfuscation",
                    described({{"enum", {false, nullptr}}}, "Obfuscation of streams is not supported.")}}},
                 {"additionalProperties", false}},
                "Only with stream.");
  p["tools"] = response_tools_field();
  p["tool_choice"] = response_tool_choice_field();
  p["parallel_tool_calls"] = described({{"type", {"boolean", "null"}}}, "More than one call in an answer.");
  p["text"] =
      described({{"type", {"object", "null"}},
                 {"properties",
                  {{"format", described({{"type", {"object", "null"}},
                                         {"properties",
                                          {{"type", {{"enum", {"text", "json_object", "json_schema"}}}},
                                           {"name", {{"type", "string"}}},
                                           {"description", nullable("string", "Of the schema.")},
                                           {"schema", {{"type", "object"}}},
                                           {"strict", {{"type", {"boolean", "null"}}}}}},
                                         {"required", {"type"}},
                                         {"additionalProperties", false}},
                                        "As a chat's response_format.")},
                   {"verbosity", described({{"enum", {"medium", nullptr}}}, "Ask for it in a message.")}}},
                 {"additionalProperties", false}},
                "The form of the answer.");
  p["reasoning"] = described(
      {{"type", {"object", "null"}},
       {"properties",
        {{"effort", described({{"enum", {"none", "minimal", "low", "medium", "high", "xhigh", nullptr}}},
                              "none and minimal ask a model that can to answer at once, the others to think "
                              "first, for as long as it likes.")},
         {"summary", described({{"enum", {"auto", "concise", "detailed", nullptr}}},
                               "Without effect: reasoning is given whole.")},
         {"generate_summary", without_effect({"string", "null"}, "The older name of summary.")}}},
       {"additionalProperties", false}},
      "Whether the model thinks first; as it likes when absent.");
  p["include"] =
      array_of({{"enum", {"reasoning.encrypted_content"}}}, 16, "Reasoning is given whole, not encrypted.");
  p["truncation"] = described({{"enum", {"disabled", nullptr}}}, "What is too long is refused, never cut.");
  p["background"] = described({{"enum", {false, nullptr}}}, "Nothing is answered later.");
  p["store"] = boolean(false, "Answers are never stored; accepted for clients that send it.");
  p["previous_response_id"] = refused(kStateless);
  p["conversation"] = refused(kStateless);
  p["prompt"] = refused("stored prompts are not supported; send instructions and input");
  p["max_tool_calls"] = refused("OpenAI's own tools are not supported; leave this field out");
  p["top_logprobs"] =
      described({{"enum", {0, nullptr}}}, "Log-probabilities: /v1/chat/completions has them.");
  p["service_tier"] = described({{"enum", {"auto", "default", nullptr}}}, "There is one tier.");
  for (const char* field : {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"})
    p[field] = nullable("string", "Without effect here, as on the answers of OpenAI's API.");
  p["metadata"] = nullable("object", "Comes back with the answer.");
  return object_of(std::move(p), {"input"});
}

}  // namespace

const Json& responses_fields() {
  static const Json fields = make_responses_fields();
  return fields;
}

}  // namespace qwench::server
