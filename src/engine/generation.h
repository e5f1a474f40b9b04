#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/constraints.h"
#include "engine/embedding.h"
#include "engine/ngram_draft.h"
#include "engine/sampler.h"
#include "engine/sequence.h"
#include "engine/stop_matcher.h"
#include "qwench/request.h"
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
  Speculation speculation;
  std::shared_ptr<Constraints> constraints;  // null without a tokenizer
};

/// One completion from its first token to its Result: draws tokens, makes text of them, decides when it ends.
class Generation {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Completion `index` of `request`; both references must outlive it. Throws Error (invalid_argument) for
  /// settings out of range.
  Generation(const Request& request, int index, const GenerationContext& context);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  Sequence& sequence() { return sequence_; }
  const Request& request() const { return request_; }
  int index() const { return index_; }
  bool finished() const { return finished_; }
  bool failed() const { return finished_ && result_.finish_reason == FinishReason::error; }
  /// How many more tokens it may draw.
  int tokens_left() const { return max_tokens_ - static_cast<int>(result_.ids.size()); }

  /// The pass that begins computes a part of it.
  void begin_pass(Time now);
  bool began() const { return began_.has_value(); }
  /// The position whose logits give the next of the prompt's log-probabilities; -1 when none is wanted.
  int next_prompt_logprob() const;
  void take_prompt_logits(std::span<const float> logits);

  /// The row of the prompt whose final hidden state is the next that its embedding needs; -1 where none is.
  int next_embedding_row() const;
  void take_hidden_state(std::span<const float> state);

  /// Gives the sequence drafts of what comes next, where guessing is on.
  void propose_drafts();
  void learn_from_drafts(int proposed, int right) { draft_.learn(proposed, right); }

  /// The backend's argmax is all it needs of the logits.
  bool takes_argmax() const {
    return !request_.logprobs && !constraint_ && context_.vocabulary->excluded.empty() &&
           sampler_.is_argmax();
  }
  /// How many of the largest logits are likely to be all it needs of them; 0: it needs the whole row.
  int top_wanted() const { return request_.logprobs || constraint_ ? 0 : sampler_.top_wanted(); }
  /// The next token, from its logits [vocab] (overwritten), by argmax, or from the largest of the logits, of
  /// which at least one must be wanted; returns the text it releases. An argmax of -1 stands for logits that
  /// are not finite. Nothing is returned, and nothing done, where the largest do not settle it.
  std::string take_logits(std::span<float> logits, SamplerScratch& scratch);
  std::string take_argmax(TokenId id);
  std::optional<std::string> take_top(const TopLogits& top, SamplerScratch& scratch);
  /// Of the token drawn last; null where it is not asked for.
  const TokenLogprob* last_logprob() const {
    return result_.logprobs.empty() ? nullptr : &result_.logprobs.back();
  }

  /// Takes over what the first completion of the same prompt has seen while it ran alone, its failure too.
  void follow(const Generation& first);

  void end(FinishReason reason);  ///< from outside
  void fail(const std::string& sentence);
  /// What the end of the text still releases; to be called once, after finished().
  std::string finish_text();
  Result take_result();

 private:
  std::string append(TokenId id);
  void take_stop_string(std::string& text);
  void finish(FinishReason reason);

  const Request& request_;
  const int index_;
  const GenerationContext& context_;
  Sequence sequence_;
  Sampler sampler_;
  std::optional<Detokenizer> detokenizer_;
  StopMatcher stop_matcher_;
  NgramDraft draft_;
  std::optional<ConstraintState> constraint_;
  std::vector<TokenId> stop_ids_;  // ascending
  int max_tokens_;
  bool finished_ = false;
  Result result_;
  std::optional<EmbeddingPool> embedding_;
  std::vector<float> raw_logits_;  // [vocab], where log-probabilities are wanted
  Time submitted_ = std::chrono::steady_clock::now();
  std::optional<Time> began_;
  Time first_token_;
};

}  // namespace qwench
