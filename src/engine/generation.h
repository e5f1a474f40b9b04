#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/sampler.h"
#include "engine/sequence.h"
#include "engine/stop_matcher.h"
#include "qwench/engine.h"
#include "text/detokenizer.h"

namespace qwench {

/// What a request needs to know of its model.
struct GenerationContext {
  std::shared_ptr<const Tokenizer> tokenizer;  // may be null
  std::shared_ptr<const SamplerVocabulary> vocabulary;
  SamplingOptions defaults;           // of the model
  std::vector<TokenId> stop_ids;      // of the model, ascending
  std::optional<int> max_new_tokens;  // of the model
  int context = 0;
};

/// One request from its first token to its Result: draws tokens, makes text of them, decides when it ends.
class Generation {
 public:
  /// Throws Error (invalid_argument) for settings out of range.
  Generation(const Request& request, size_t index, const GenerationContext& context);

  Sequence& sequence() { return sequence_; }
  bool finished() const { return finished_; }

  /// The backend's argmax is all it needs of the logits.
  bool takes_argmax() const {
    return !request_.logprobs && context_.vocabulary->excluded.empty() && sampler_.is_argmax();
  }
  /// The next token, from its logits [vocab] (overwritten) or by argmax; returns the text it releases. An
  /// argmax of -1 stands for logits that are not finite.
  std::string take_logits(std::span<float> logits, SamplerScratch& scratch);
  std::string take_argmax(TokenId id);

  void cancel();
  void fail(const std::string& sentence);
  /// What the end of the text still releases; to be called once, after finished().
  std::string finish_text();
  Result take_result();

 private:
  std::string append(TokenId id);
  void finish(FinishReason reason);

  const Request& request_;
  const GenerationContext& context_;
  Sequence sequence_;
  Sampler sampler_;
  std::optional<Detokenizer> detokenizer_;
  StopMatcher stop_matcher_;
  std::vector<TokenId> stop_ids_;  // ascending
  int max_tokens_;
  bool finished_ = false;
  Result result_;
  std::vector<float> raw_logits_;  // [vocab], where log-probabilities are wanted
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point first_token_;
};

}  // namespace qwench
