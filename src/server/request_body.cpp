#include "server/request_body.h"

#include <fmt/format.h>

#include "core/large_integers.h"
#include "engine/constraint_fields.h"
#include "engine/sampling_options.h"
#include "grammar/schema_integers.h"
#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/json_schema.h"
#include "server/messages.h"
#include "server/openai_answer.h"
#include "server/request_fields.h"

namespace qwench::server {
namespace {

constexpr int kDeepestBody = 64;
constexpr int kDefaultCompletionTokens = 16;  // of OpenAI's API

bool flag(const Json& body, const char* name, bool fallback) {
  const Json* value = given(body, name);
  return value == nullptr ? fallback : value->get<bool>();
}

/// A whole number that the schema has bounded; 2.0 is whole too.
std::optional<int> whole_of(const Json& body, const char* name) {
  const Json* value = given(body, name);
  if (value == nullptr) return std::nullopt;
  return value->is_number_float() ? static_cast<int>(value->get<double>()) : value->get<int>();
}

std::string model_of(const Json& body) {
  const Json* model = given(body, "model");
  return model == nullptr ? "" : model->get<std::string>();
}

std::vector<TokenId> read_ids(const Json& list) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    ids.push_back(id.is_number_float() ? static_cast<TokenId>(id.get<double>()) : id.get<TokenId>());
  }
  return ids;
}

/// OpenAI's seeds may be negative; the engine's are the same 64 bits.
std::optional<uint64_t> read_seed(const Json& body) {
  const Json* seed = given(body, "seed");
  if (seed == nullptr) return std::nullopt;
  if (seed->is_number_unsigned()) return seed->get<uint64_t>();
  if (seed->is_number_integer()) return static_cast<uint64_t>(seed->get<int64_t>());
  const double number = seed->get<double>();
  if (number >= 18446744073709551616.0) refuse_field("seed", "expected a whole number of at most 64 bits");
  return number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number)) : static_cast<uint64_t>(number);
}

void read_settings(const Json& body, Request& settings) {
  for (const auto& [name, value] : body.items()) {
    if (name == "seed" || name == "max_tokens") continue;
    try {
      if (read_constraint_field(name, value, settings.constraint)) continue;
      if (!read_sampling_field(name, value, settings.sampling)) read_stop_field(name, value, settings.stop);
    } catch (const Error& error) {
      throw ApiError(400, error.what(), name);
    }
  }
  settings.sampling.seed = read_seed(body);
  settings.stop.min_tokens = whole_of(body, "min_tokens").value_or(0);
  settings.n = whole_of(body, "n").value_or(1);
  settings.include_stop = flag(body, "include_stop_str_in_output", false);
  settings.skip_special_tokens = flag(body, "skip_special_tokens", true);
}

/// What min_tokens and max_tokens say together, once both are known.
void check_settings(const Request& settings) {
  if (settings.stop.max_tokens >= 0 && settings.stop.min_tokens > settings.stop.max_tokens) {
    refuse_field("min_tokens", fmt::format("found {}, which is more than the most tokens, {}",
                                           settings.stop.min_tokens, settings.stop.max_tokens));
  }
  try {
    check(settings.stop);
    [[maybe_unused]] const SamplingParams in_range = settings.sampling.resolve();
  } catch (const Error& error) {
    throw to_api_error(error);
  }
}

void read_stream(const Json& body, GenerationBody& read) {
  read.stream = flag(body, "stream", false);
  const Json* options = given(body, "stream_options");
  if (options != nullptr && !read.stream) refuse_field("stream_options", "only with \"stream\": true");
  if (options != nullptr) read.include_usage = flag(*options, "include_usage", false);
}

GenerationBody read_common(const Json& body) {
  GenerationBody read;
  read.model = model_of(body);
  read_settings(body, read.settings);
  read_stream(body, read);
  return read;
}

}  // namespace

std::vector<TextPrompt> read_prompts(const Json& prompt) {
  if (prompt.is_string()) return {prompt.get<std::string>()};
  if (prompt[0].is_number()) return {read_ids(prompt)};
  std::vector<TextPrompt> prompts;
  for (const Json& one : prompt) {
    if (one.is_string()) {
      prompts.emplace_back(one.get<std::string>());
    } else {
      prompts.emplace_back(read_ids(one));
    }
  }
  return prompts;
}

Json parse_body(const std::string& body) {
  Json json;
  try {
    json = parse_json_exactly(body, "the request's body", kDeepestBody, SameKeys::are_errors);
    for (const char* field : kSchemaFields) {
      if (json.is_object() && json.contains(field))
        refuse_rounded_integers(json[field], "the request's body", field);
    }
  } catch (const RepeatedKey& repeated) {
    refuse_field(repeated.place(), "this field is there twice");
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
  if (!json.is_object())
    throw ApiError(400, fmt::format("the request's body is a JSON {}, expected an object", json_type(json)));
  for (auto& [name, value] : json.items()) {
    const bool for_template = name == "messages" || name == "tools" || name == "chat_template_kwargs";
    if (!for_template && has_large_integers(value)) value = with_doubles(value);
  }
  return json;
}

GenerationBody read_chat_body(const Json& body) {
  GenerationBody read = read_chat_body(body, chat_fields());
  check_tool_call_ids(body["messages"]);
  return read;
}

GenerationBody read_chat_body(const Json& body, const Json& fields) {
  check_schema(body, fields, "");
  GenerationBody read = read_common(body);
  read.chat = true;
  read.id_prefix = "chatcmpl-";
  read.make_answer = make_openai_answer;
  read.messages = read_chat_prompt(body);
  read.tools = read_tool_use(body, read.messages.input.tools);
  if (read.tools.choice == ToolUse::Choice::none) read.messages.input.tools = nullptr;
  const std::optional<int> most = whole_of(body, "max_completion_tokens");
  const std::optional<int> most_by_old_name = whole_of(body, "max_tokens");
  if (most && most_by_old_name && *most != *most_by_old_name)
    refuse_field("max_tokens", fmt::format("found {}, but max_completion_tokens, its newer name, is {}",
                                           *most_by_old_name, *most));
  read.settings.stop.max_tokens = most.value_or(most_by_old_name.value_or(-1));
  const std::optional<int> top = whole_of(body, "top_logprobs");
  if (flag(body, "logprobs", false)) {
    read.settings.logprobs = top.value_or(0);
  } else if (top && *top > 0) {
    refuse_field("top_logprobs", "only with \"logprobs\": true");
  }
  check_settings(read.settings);
  return read;
}

GenerationBody read_completion_body(const Json& body) {
  check_schema(body, completion_fields(), "");
  GenerationBody read = read_common(body);
  read.id_prefix = "cmpl-";
  read.make_answer = make_openai_answer;
  read.prompts = read_prompts(body["prompt"]);
  read.settings.stop.max_tokens = whole_of(body, "max_tokens").value_or(kDefaultCompletionTokens);
  read.echo = flag(body, "echo", false);
  read.settings.logprobs = whole_of(body, "logprobs");
  if (read.echo) read.settings.prompt_logprobs = read.settings.logprobs;
  const std::optional<int> best_of = whole_of(body, "best_of");
  if (best_of && *best_of != read.settings.n)
    refuse_field("best_of",
                 fmt::format("found {}, but n is {}: choosing among more than are returned is not supported",
                             *best_of, read.settings.n));
  check_settings(read.settings);
  return read;
}

TokenizeBody read_tokenize_body(const Json& body) {
  check_schema(body, tokenize_fields(), "");
  TokenizeBody read;
  read.model = model_of(body);
  const Json* prompt = given(body, "prompt");
  const Json* messages = given(body, "messages");
  if ((prompt == nullptr) == (messages == nullptr))
    refuse_field("prompt", "expected either prompt or messages");
  if (prompt != nullptr) {
    for (const char* field :
         {"add_generation_prompt", "continue_final_message", "chat_template_kwargs", "tools"}) {
      if (given(body, field) != nullptr) refuse_field(field, "only with messages");
    }
    read.text = prompt->get<std::string>();
  } else {
    if (given(body, "add_special_tokens") != nullptr)
      refuse_field("add_special_tokens",
                   "only with prompt: a chat template writes its special tokens itself");
    read.messages = read_chat_prompt(body);
  }
  read.add_special_tokens = flag(body, "add_special_tokens", true);
  read.return_token_strs = flag(body, "return_token_strs", false);
  return read;
}

DetokenizeBody read_detokenize_body(const Json& body) {
  check_schema(body, detokenize_fields(), "");
  return {model_of(body), read_ids(body["tokens"])};
}

ApplyTemplateBody read_apply_template_body(const Json& body) {
  check_schema(body, apply_template_fields(), "");
  return {model_of(body), read_chat_prompt(body)};
}

}  // namespace qwench::server
