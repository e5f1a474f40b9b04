#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qwench/constraint.h"
#include "qwench/sampling.h"

namespace qwench {

/// How one vector is made of a prompt's hidden states, behind the final norm.
enum class Pooling {
  mean,  ///< of all positions
  last,  ///< the last position's
};
std::string_view name(Pooling pooling) noexcept;

/// One prompt and what to do with it.
struct Request {
  std::vector<TokenId> ids;  ///< the prompt; not empty
  SamplingOptions sampling;  ///< over the model's generation_config.json, over the built-in defaults
  StopParams stop;
  std::optional<int>
      logprobs;  ///< alternatives reported with each token's log-probability, 0 to 20; absent: none
  /// The same for the tokens of the prompt, the first apart. The whole prompt is then computed, whatever is
  /// cached; with StopParams::max_tokens 0 nothing else is.
  std::optional<int> prompt_logprobs;
  bool skip_special_tokens = true;  ///< special tokens leave no text
  bool include_stop = false;        ///< the stop string that ends the text is part of it
  /// What the text must be: any text when absent. It goes before min_tokens and ignore_eos; stop strings and
  /// max_tokens may still cut it short.
  std::optional<Constraint> constraint;
  /// A vector of the prompt is wanted in the place of an answer: Result::embedding. Nothing is drawn, so that
  /// sampling and stop have no effect, the prompt may fill the context, and n is 1. Mean pooling computes the
  /// whole prompt, whatever is cached.
  std::optional<Pooling> embedding;
  /// Completions of the prompt, 1 to kMaxCompletions, which share its part of the KV cache. Completion i
  /// draws as a request for one completion with the seed `seed + i` does.
  int n = 1;
  /// The KV cache of equal beginnings of earlier and concurrent prompts and answers is used, and this one's
  /// is kept for later ones while there is room. Changes no number of the answer.
  bool cache_prompt = true;
  /// What has not ended by then ends with what it has (FinishReason::deadline), in the queue too.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

inline constexpr int kMaxCompletions = 128;

enum class FinishReason {
  stop,       ///< a stop id or a stop string
  length,     ///< max_tokens, or the context is full
  cancelled,  ///< by the caller, or the engine was stopped
  deadline,   ///< Request::deadline passed
  error,      ///< see Result::error
};
inline constexpr int kFinishReasonCount = 5;
std::string_view name(FinishReason reason) noexcept;

struct TokenLogprob {
  TokenId id;
  float logprob;                               ///< natural logarithm, of the raw logits' softmax
  std::vector<std::pair<TokenId, float>> top;  ///< the best alternatives, best first
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;  ///< of the prompt, that were in the KV cache already when it was first run
};

/// Seconds.
struct Timings {
  double queue_seconds = 0;        ///< from the submission to the first pass that computes a part of it
  double prefill_seconds = 0;      ///< from there to the first token
  double first_token_seconds = 0;  ///< from the submission to the first token
  double decode_seconds = 0;       ///< from the first token to the end
};

/// One finished completion.
struct Result {
  std::optional<std::string> text;  ///< absent when the model has no tokenizer
  std::vector<TokenId> ids;         ///< the output; the stop id, where one ended it, is included
  FinishReason finish_reason = FinishReason::stop;
  std::string error;                       ///< the sentence, where finish_reason is error
  std::optional<std::string> stop_string;  ///< that ended the text
  std::optional<TokenId> stop_id;          ///< that ended the text
  uint64_t seed = 0;                       ///< that was drawn with
  Usage usage;
  std::vector<TokenLogprob> logprobs;         ///< [ids], where asked for
  std::vector<TokenLogprob> prompt_logprobs;  ///< [prompt ids - 1], where asked for
  std::vector<float> embedding;               ///< [hidden size], not normalized, where asked for
  Timings timings;
};

}  // namespace qwench
