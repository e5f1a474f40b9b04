#include "server/request_fields.h"

#include "qwench/request.h"
#include "server/field_schemas.h"
#include "server/tool_fields.h"

namespace qwench::server {
using namespace fields;  // NOLINT(google-build-using-namespace): short words of one table

namespace {

/// What the text must be; one of them at a time.
Json constraint_properties() {
  Json p = Json::object();
  Json named = object_of({{"name", {{"type", {"string", "null"}}}},
                          {"description", {{"type", {"string", "null"}}}},
                          {"strict", boolean(true, "Answers are always held to the schema.")},
                          {"schema", {{"type", {"object", "boolean"}}}}},
                         {"schema"});
  named["type"] = {"object", "null"};
  p["response_format"] = described(
      {{"type", {"object", "null"}},
       {"properties", {{"type", {{"enum", {"text", "json_object", "json_schema"}}}}, {"json_schema", named}}},
       {"required", {"type"}},
       {"additionalProperties", false}},
      "Any text, any JSON object, or JSON that is valid under a schema.");
  p["guided_json"] = described({{"type", {"object", "string", "null"}}},
                               "A JSON Schema, or its text: the text is JSON that is valid under it.");
  p["guided_regex"] = nullable("string", "The text matches this pattern as a whole.");
  p["guided_choice"] = described({{"type", {"array", "null"}},
                                  {"minItems", 1},
                                  {"maxItems", 10000},
                                  {"items", {{"type", "string"}, {"minLength", 1}}}},
                                 "The text is one of these.");
  p["guided_grammar"] = nullable("string", "The text is of this grammar, in llama.cpp's notation (GBNF).");
  p["grammar"] = nullable("string", "Another name of guided_grammar.");
  return p;
}

/// How tokens are drawn and when the text ends: the same on chat and completions.
Json generation_properties() {
  Json p = Json::object();
  p["temperature"] = number(0, 2, "0 is greedy. When absent, what the model's generation_config.json says.");
  p["top_p"] = described({{"type", {"number", "null"}}, {"exclusiveMinimum", 0}, {"maximum", 1}},
                         "Keep the smallest set of tokens whose probability reaches it.");
  p["top_k"] = whole(0, kLargestInt, "Keep the k best tokens and their ties; 0 keeps all.");
  p["min_p"] = number(0, 1, "Keep tokens with at least this share of the best one's probability.");
  p["presence_penalty"] = number(-2, 2, "Subtracted once from tokens of the answer.");
  p["frequency_penalty"] = number(-2, 2, "Subtracted from tokens for each time the answer has them.");
  p["repetition_penalty"] =
      described({{"type", {"number", "null"}}, {"exclusiveMinimum", 0}, {"maximum", 1000}},
                "Divides positive and multiplies negative logits of tokens of prompt and answer; 1 is off.");
  p["logit_bias"] =
      described({{"type", {"object", "null"}},
                 {"maxProperties", 65536},
                 {"propertyNames", {{"pattern", "^(0|[1-9][0-9]{0,8})$"}}},
                 {"additionalProperties", {{"type", "number"}, {"minimum", -100}, {"maximum", 100}}}},
                "Added to the logits of these token ids.");
  p["seed"] = described({{"type", {"integer", "null"}}, {"minimum", INT64_MIN}, {"maximum", UINT64_MAX}},
                        "The same seed gives the same text; choice i of n draws with seed + i.");
  p["n"] =
      described({{"type", {"integer", "null"}}, {"minimum", 1}, {"maximum", kMaxCompletions}, {"default", 1}},
                "How many choices of each prompt.");
  p["stop"] = either({{{"type", "string"}, {"minLength", 1}, {"maxLength", 1024}},
                      {{"type", "array"},
                       {"maxItems", kMaxStopStrings},
                       {"items", {{"type", "string"}, {"minLength", 1}, {"maxLength", 1024}}}},
                      {{"type", "null"}}},
                     "The text ends before the first of these.");
  Json stop_ids = token_ids("End at these tokens too.", 0);
  stop_ids["type"] = {"array", "null"};
  stop_ids["maxItems"] = 1024;
  p["stop_token_ids"] = stop_ids;
  p["include_stop_str_in_output"] = boolean(false, "The stop string that ends the text is part of it.");
  p["min_tokens"] =
      whole(0, kLargestInt, "Neither stop strings nor stop tokens count before so many tokens.");
  p["ignore_eos"] = boolean(false, "The model's own stop tokens do not end the text.");
  p["skip_special_tokens"] = boolean(true, "Special tokens leave no text.");
  add(p, constraint_properties());
  p["stream"] = boolean(false, "Answer by server-sent events as the text appears; the last is [DONE].");
  p["stream_options"] =
      described({{"type", {"object", "null"}},
                 {"properties",
                  {{"include_usage", boolean(false, "A last chunk, without choices, has the usage.")},
                   {"include_obfuscation",
                    described({{"enum", {false, nullptr}}}, "Obfuscation of streams is not supported.")}}},
                 {"additionalProperties", false}},
                "Only with stream.");
  p["user"] = nullable("string", "Without effect here, as on the answers of OpenAI's API.");
  return p;
}

Json message_properties() {
  const Json text_part = object_of({{"type", {{"enum", {"text", "refusal"}}}},
                                    {"text", {{"type", "string"}}},
                                    {"refusal", {{"type", "string"}}}},
                                   {"type"});
  const Json call = object_of(
      {{"id", {{"type", "string"}}},
       {"type", {{"enum", {"function"}}}},
       {"index", described({{"type", "integer"}}, "Its place, as streams give it: the order tells.")},
       {"function", object_of({{"name", {{"type", "string"}}}, {"arguments", {{"type", "string"}}}},
                              {"name", "arguments"})}},
      {"function"});
  return {
      {"role", described({{"enum", {"system", "developer", "user", "assistant", "tool"}}},
                         "developer is the same as system.")},
      {"content",
       either({{{"type", "string"}},
               {{"type", "array"}, {"minItems", 1}, {"items", text_part}},
               {{"type", "null"}}},
              "Text, or parts of text, which are joined by newlines; null only beside tool_calls.")},
      {"name", nullable("string", "Handed to the chat template.")},
      {"reasoning_content", nullable("string", "What the assistant thought: handed to the chat template.")},
      {"refusal", nullable("string", "An assistant's refusal: its text where there is no content.")},
      {"tool_calls",
       described({{"type", {"array", "null"}}, {"items", call}},
                 "Calls that an assistant's earlier message made: handed to the chat template.")},
      {"tool_call_id", nullable("string", "Of a tool's message: handed to the chat template.")},
      {"annotations",
       described({{"type", {"array", "null"}}},
                 "Of an answer that is sent back: no part of the prompt, as in OpenAI's API.")},
      {"audio", refused("audio is not supported; leave this field out")},
      {"function_call", refused("function_call was replaced by tool_calls; use that")},
  };
}

Json messages_field() {
  return described({{"type", "array"},
                    {"minItems", 1},
                    {"maxItems", kMaxMessages},
                    {"items", object_of(message_properties(), {"role"})}},
                   "The conversation so far.");
}

/// How messages become a prompt.
Json template_properties(int longest_tool_name = kLongestChatToolName) {
  return {
      {"messages", messages_field()},
      {"tools", tools_field(longest_tool_name)},
      {"add_generation_prompt",
       boolean(true,
               "The prompt ends where the assistant's answer begins; not with continue_final_message.")},
      {"continue_final_message",
       boolean(false, "The answer goes on with the last message, whose turn is left open.")},
      {"chat_template_kwargs",
       nullable("object", "Variables of the model's chat template, such as enable_thinking.")},
  };
}

Json make_chat_fields(int longest_tool_name) {
  constexpr const char* kNoEffect = "Without effect on answers, here as in OpenAI's API.";
  Json p{{"model", model_field()}};
  add(p, template_properties(longest_tool_name));
  p["max_completion_tokens"] =
      whole(1, kLargestInt,
            "The most tokens of an answer, its reasoning included; what the context holds when absent.");
  p["max_tokens"] = whole(1, kLargestInt, "The older name of max_completion_tokens.");
  add(p, generation_properties());
  p["logprobs"] = boolean(false, "Report each token's log-probability.");
  p["top_logprobs"] = whole(0, kMaxTopLogprobs, "And those of so many alternatives; needs logprobs.");
  p["modalities"] = described({{"type", {"array", "null"}}, {"minItems", 1}, {"items", {{"enum", {"text"}}}}},
                              "Only text is supported.");
  add(p, tool_choice_fields(longest_tool_name));
  p["audio"] = refused("audio is not supported; leave this field out");
  p["prediction"] = refused("predicted outputs are not supported; leave this field out");
  p["reasoning_effort"] = refused(
      "reasoning_effort is not supported; use chat_template_kwargs, for Qwen3 {\"enable_thinking\": false}");
  p["verbosity"] = refused("verbosity is not supported; ask for it in a message");
  p["web_search_options"] = refused("web search is not supported; leave this field out");
  p["metadata"] = nullable("object", kNoEffect);
  p["store"] = boolean(false, "Answers are never stored; accepted for clients that send it.");
  p["service_tier"] =
      described({{"enum", {"auto", "default", nullptr}}}, "There is one tier; others are refused.");
  p["safety_identifier"] = nullable("string", kNoEffect);
  p["prompt_cache_key"] = nullable("string", kNoEffect);
  return object_of(std::move(p), {"messages"});
}

Json make_completion_fields() {
  Json p{{"model", model_field()}};
  Json many_ids = token_ids("");
  many_ids.erase("description");
  p["prompt"] = either(
      {{{"type", "string"}},
       {{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxPrompts}, {"items", {{"type", "string"}}}},
       many_ids,
       {{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxPrompts}, {"items", many_ids}}},
      "A text, token ids, or several of them. Special tokens in a text are recognised.");
  p["max_tokens"] =
      described({{"type", {"integer", "null"}}, {"minimum", 0}, {"maximum", kLargestInt}, {"default", 16}},
                "The most tokens of a choice; 0 with echo reports on the prompt alone.");
  add(p, generation_properties());
  p["logprobs"] = whole(0, kMaxTopLogprobs, "Report log-probabilities, and so many alternatives.");
  p["echo"] = boolean(false, "The text begins with the prompt; logprobs then cover it too.");
  p["best_of"] = whole(1, kMaxCompletions, "Only the value of n, of which none is dropped.");
  p["suffix"] =
      refused("suffix is not supported: put the model's own fill-in-the-middle tokens into the prompt");
  return object_of(std::move(p), {"prompt"});
}

Json make_tokenize_fields() {
  Json p{{"model", model_field()},
         {"prompt", nullable("string", "A text; this or messages.")},
         {"add_special_tokens",
          boolean(true, "Put around the text what the tokenizer puts there, such as BOS.")},
         {"return_token_strs", boolean(false, "Also the tokens as the vocabulary spells them.")}};
  Json chat = template_properties();
  chat["messages"]["type"] = {"array", "null"};
  add(p, chat);
  return object_of(std::move(p), {});
}

}  // namespace

const Json& chat_fields() {
  static const Json fields = make_chat_fields(kLongestChatToolName);
  return fields;
}

const Json& translated_chat_fields() {
  static const Json fields = make_chat_fields(kLongestApiToolName);
  return fields;
}

const Json& completion_fields() {
  static const Json fields = make_completion_fields();
  return fields;
}

const Json& tokenize_fields() {
  static const Json fields = make_tokenize_fields();
  return fields;
}

const Json& detokenize_fields() {
  static const Json fields = object_of(
      {{"model", model_field()}, {"tokens", token_ids("The ids whose text is wanted.", 0)}}, {"tokens"});
  return fields;
}

const Json& apply_template_fields() {
  static const Json fields = [] {
    Json p{{"model", model_field()}};
    add(p, template_properties());
    return object_of(std::move(p), {"messages"});
  }();
  return fields;
}

}  // namespace qwench::server
