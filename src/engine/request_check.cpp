#include "engine/request_check.h"

#include <fmt/format.h>

#include "engine/sampling_options.h"

namespace qwench {

void check_range(const char* name, int value, int low, int high) {
  if (value < low || value > high) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} is {}, but must be from {} to {}", name, value, low, high));
  }
}

std::string tokens(size_t count) { return fmt::format("{} token{}", count, count == 1 ? "" : "s"); }

std::string what_to_shorten(std::string_view what, const ModelInfo& info) {
  if (info.context >= info.max_context)
    return fmt::format(", which is the model's limit; shorten the {}", what);
  return fmt::format("; shorten the {} or load the model with a longer context (-c), of at most {}", what,
                     info.max_context);
}

void check_ids(std::span<const TokenId> ids, const ModelInfo& info) {
  if (ids.empty())
    throw Error(ErrorKind::invalid_argument, "the prompt is empty: at least one token is needed");
  for (const TokenId id : ids) {
    if (id < 0 || id >= info.vocab_size) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("token id {} is not in the vocabulary of {} ids", id, info.vocab_size));
    }
  }
}

void check_request(const Request& request, const ModelInfo& info, const GenerationContext& context) {
  check_ids(request.ids, info);
  const bool answers = !request.embedding && (request.stop.max_tokens != 0 || !request.prompt_logprobs);
  const auto length = static_cast<int64_t>(request.ids.size());
  if (length > info.context || (answers && length == info.context)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the prompt has {}, but the context holds {} with at least one to answer in{}",
                            tokens(request.ids.size()), info.context, what_to_shorten("prompt", info)));
  }
  [[maybe_unused]] const Sampler accepted(request.sampling.over(context.defaults).resolve(),
                                          context.vocabulary, {});
  check(request.stop);
  if (!request.stop.stop.empty() && context.tokenizer == nullptr) {
    throw Error(ErrorKind::invalid_argument,
                "stop: the model has no tokenizer, so its output is no text that could hold one; use "
                "stop_token_ids");
  }
  if (request.logprobs) check_range("logprobs", *request.logprobs, 0, 20);
  if (request.prompt_logprobs) check_range("prompt_logprobs", *request.prompt_logprobs, 0, 20);
  if (request.constraint) {
    if (!context.constraints) {
      throw Error(ErrorKind::invalid_argument,
                  "the model has no tokenizer, so its output is no text that a constraint could hold for");
    }
    context.constraints->check(*request.constraint);
  }
  check_range("n", request.n, 1, kMaxCompletions);
  if (request.embedding && (request.n != 1 || request.logprobs || request.prompt_logprobs)) {
    throw Error(ErrorKind::invalid_argument,
                "embedding: an embedding has no choices and no log-probabilities; leave n, logprobs and "
                "prompt_logprobs out");
  }
}

}  // namespace qwench
