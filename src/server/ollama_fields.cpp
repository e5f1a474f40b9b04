#include "server/field_schemas.h"
#include "server/ollama_common.h"
#include "server/ollama_request.h"
#include "server/request_fields.h"
#include "server/tool_fields.h"

namespace qwench::server {

using namespace fields;  // NOLINT(google-build-using-namespace): short words of one table

namespace {

Json options_field() {
  Json p{
      {"num_predict",
       whole(-2, kLargestInt, "The most tokens of an answer; -1 or -2: what the context holds.")},
      {"temperature",
       number(0, 2, "0 is greedy. When absent, what the model's generation_config.json says.")},
      {"top_k", whole(0, kLargestInt, "Keep the k best tokens and their ties; 0 keeps all.")},
      {"top_p", described({{"type", {"number", "null"}}, {"exclusiveMinimum", 0}, {"maximum", 1}},
                          "Keep the smallest set of tokens whose probability reaches it.")},
      {"min_p", number(0, 1, "Keep tokens with at least this share of the best one's probability.")},
      {"seed", whole(-kLargestInt, kLargestInt, "The same seed gives the same text.")},
      {"stop", either({{{"type", "string"}, {"minLength", 1}, {"maxLength", 1024}},
                       {{"type", "array"},
                        {"maxItems", kMaxStopStrings},
                        {"items", {{"type", "string"}, {"minLength", 1}, {"maxLength", 1024}}}},
                       {{"type", "null"}}},
                      "The text ends before the first of these.")},
      {"repeat_penalty",
       described(
           {{"type", {"number", "null"}}, {"exclusiveMinimum", 0}, {"maximum", 1000}},
           "Divides positive and multiplies negative logits of tokens of prompt and answer; 1 is off.")},
      {"repeat_last_n", described({{"enum", {-1, nullptr}}}, "Penalties look at the whole text.")},
      {"presence_penalty", number(-2, 2, "Subtracted once from tokens of the answer.")},
      {"frequency_penalty", number(-2, 2, "Subtracted from tokens for each time the answer has them.")},
      {"num_ctx", whole(1, kLargestInt, "Accepted up to the server's context (-c), which is what counts.")},
      {"typical_p", described({{"enum", {1.0, nullptr}}}, "Typical sampling is not supported.")},
      {"mirostat", described({{"enum", {0, nullptr}}}, "Mirostat is not supported.")}};
  for (const char* field : {"num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread"})
    p[field] = without_effect({"integer", "null"}, "Without effect: the server was started with its own.");
  for (const char* field : {"numa", "low_vram", "use_mmap", "use_mlock", "f16_kv", "vocab_only"})
    p[field] = without_effect({"boolean", "null"}, "Without effect: the server was started with its own.");
  return described({{"type", {"object", "null"}}, {"properties", p}, {"additionalProperties", false}},
                   "How tokens are drawn and when the text ends.");
}

Json common_fields() {
  return {{"model", model_field()},
          {"stream", boolean(true, "Answer line by line as the text appears.")},
          {"format", either({{{"type", "string"}}, {{"type", "object"}}, {{"type", "null"}}},
                            "\"json\", or a JSON Schema that the answer must follow.")},
          {"options", options_field()},
          {"think", either({{{"type", "boolean"}}, {{"enum", {"low", "medium", "high"}}}, {{"type", "null"}}},
                           "Whether a model that can do without thinks first, for as long as it likes; as it "
                           "likes when absent.")},
          {"keep_alive", ollama_keep_alive_field()},
          {"logprobs",
           described({{"enum", {false, nullptr}}}, "Log-probabilities: /v1/chat/completions has them.")}};
}

Json images_field() { return array_of({{"type", "string"}}, 0, "Images are not supported."); }

Json message() {
  const Json call =
      object_of({{"id", {{"type", "string"}}},
                 {"type", {{"enum", {"function"}}}},
                 {"function", object_of({{"name", {{"type", "string"}}},
                                         {"arguments", {{"type", "object"}}},
                                         {"index", without_effect({"integer", "null"}, "Without effect.")}},
                                        {"name", "arguments"})}},
                {"function"});
  return object_of(
      {{"role", {{"enum", {"system", "user", "assistant", "tool"}}}},
       {"content", nullable("string", "The text.")},
       {"thinking", nullable("string", "What the assistant thought: handed to the chat template.")},
       {"images", images_field()},
       {"tool_calls", described({{"type", {"array", "null"}}, {"items", call}},
                                "Calls that an assistant's earlier message made.")},
       {"tool_name", nullable("string", "Of a tool's message: handed to the chat template.")},
       {"tool_call_id", nullable("string", "Of a tool's message: handed to the chat template.")}},
      {"role"});
}

Json ollama_tools_field() {
  const Json function = object_of({{"name", tool_name_field(kLongestApiToolName)},
                                   {"description", nullable("string", "What it does, for the model.")},
                                   {"parameters", nullable("object", "JSON Schema of its arguments.")},
                                   {"strict", {{"type", {"boolean", "null"}}}}},
                                  {"name"});
  return array_of(object_of({{"type", {{"enum", {"function"}}}}, {"function", function}}, {"function"}),
                  kMaxTools, "What the model may call.");
}

}  // namespace

const Json& ollama_chat_fields() {
  static const Json fields = [] {
    Json p = common_fields();
    p["messages"] = array_of(message(), kMaxMessages, "The conversation so far; none only loads the model.");
    p["tools"] = ollama_tools_field();
    return object_of(std::move(p), {});
  }();
  return fields;
}

const Json& ollama_generate_fields() {
  static const Json fields = [] {
    Json p = common_fields();
    p["prompt"] = nullable("string", "The user's text; none only loads the model.");
    p["system"] = nullable("string", "What the model is told before it.");
    p["raw"] = boolean(false, "The prompt is used as it is, without the chat template.");
    p["images"] = images_field();
    p["template"] = nullable("string", "The model's own chat template is used; only empty.");
    p["suffix"] =
        nullable("string", "Only empty: put the model's own fill-in-the-middle tokens into a raw prompt.");
    p["context"] = refused("context is not supported: send the conversation to /api/chat");
    return object_of(std::move(p), {});
  }();
  return fields;
}

const Json& ollama_show_fields() {
  static const Json fields =
      object_of({{"model", model_field()},
                 {"name", nullable("string", "The older name of model.")},
                 {"verbose", boolean(false, "Without effect: the vocabulary is not listed.")}},
                {});
  return fields;
}

}  // namespace qwench::server
