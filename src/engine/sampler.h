#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/token_counts.h"
#include "grammar/token_mask.h"
#include "qwench/sampling.h"

namespace qwench {

/// Which ids of the logits may be drawn. Rows of the head beyond the tokenizer's ids are padding: they are
/// never drawn and never looked at.
struct SamplerVocabulary {
  int valid_ids = 0;              ///< ids are [0, valid_ids)
  std::vector<TokenId> excluded;  ///< among them, ids without a token
};

struct Candidate {
  TokenId id;
  double probability;
};

/// What may be drawn at one place, beside what SamplerVocabulary says.
struct TokenFilter {
  const TokenMask* mask = nullptr;      ///< ids; all when null
  std::span<const TokenId> also = {};   ///< ids beside those of the mask
  std::span<const TokenId> never = {};  ///< ids that are not in `also`, whatever the mask says
};

/// The largest logits of the valid ids as the model gave them, as Backend::top_k does: largest first, equals
/// by their id; the first id is -1 where a logit is not finite.
struct TopLogits {
  std::span<const TokenId> ids;   // [k], k >= 1
  std::span<const float> values;  // [k]
};

/// Working memory of distribution() and sample(). One for all the samplers of a thread: it grows to the
/// vocabulary's size (16 bytes an id) only where neither top_k nor min_p narrow the choice, and then stays.
struct SamplerScratch {
  std::vector<Candidate> candidates;
  std::vector<float> heap;
  std::vector<float> kept;  // logits of TokenFilter::also
  std::vector<std::pair<TokenId, float>> top;
};

/// Draws the tokens of one sequence; the steps and their order are those of SamplingParams. Scores are f32,
/// as in the implementations it must equal; probabilities are f64. The random numbers are SplitMix64 (Steele,
/// Lea and Flood 2014, "Fast splittable pseudorandom number generators") of the seed and the number of tokens
/// drawn, so the same seed gives the same text on every platform and beside any other sequences. Not
/// thread-safe; allocates only while its tables grow.
class Sampler {
 public:
  /// Temperatures below this are greedy: quotients would leave the range of a float.
  static constexpr float kLeastTemperature = 1e-5f;

  /// `params` as resolved by SamplingOptions::resolve. `prompt` is read here and not kept. Without a seed,
  /// one is drawn from the system. Throws Error (invalid_argument) when logit_bias names an id that is not
  /// valid.
  Sampler(const SamplingParams& params, std::shared_ptr<const SamplerVocabulary> vocabulary,
          std::span<const TokenId> prompt);

  /// These ids are not drawn before `tokens` tokens were: stop ids under min_tokens.
  void mask_until(std::vector<TokenId> ids, int tokens);

  /// The largest valid logit is the next token: no step changes which one it is. The engine may then take the
  /// backend's argmax and call accept().
  bool is_argmax() const;

  /// How many of the largest logits are likely to settle the next token; 0 where the whole row is needed. It
  /// is needed where no top_k limits the choice (or one that leaves no room for one more, kMostTop), and
  /// where a step may raise a logit from far below: a bias above 0, a penalty that is a reward.
  int top_wanted() const;

  /// The next token, which is accept()ed. `logits` [vocabulary rows, at least valid_ids] is overwritten where
  /// a step changes a logit. Throws Error (numeric) where one of the valid ids has a logit that is not
  /// finite, and (invalid_argument) where nothing is left to draw.
  TokenId sample(std::span<float> logits, SamplerScratch& scratch, const TokenFilter& filter = {});

  /// The tokens left by the steps, with their probabilities; in no promised order. Valid until the next use
  /// of `scratch`. Greedy: one token of probability 1, the first of equals. Draws and accepts nothing.
  std::span<const Candidate> distribution(std::span<float> logits, SamplerScratch& scratch,
                                          const TokenFilter& filter = {}) const;

  /// The same, bit for bit, of the largest logits alone. Nothing where they do not settle it, because of ties
  /// or because so many of them were lowered that others may come before them. Throws as those do.
  /// Requires that the row is not needed: top_wanted() > 0.
  std::optional<TokenId> sample(const TopLogits& top, SamplerScratch& scratch);
  std::optional<std::span<const Candidate>> distribution(const TopLogits& top, SamplerScratch& scratch) const;

  /// Counts a token of the output.
  void accept(TokenId id);

  uint64_t seed() const { return seed_; }
  int tokens() const { return tokens_; }  ///< accepted so far

 private:
  bool masks_now() const { return tokens_ < masked_before_ && !masked_.empty(); }
  template <typename At>
  void penalize(const At& at) const;
  template <typename At>
  void ban(const At& at) const;
  template <typename ForEach>
  std::span<const Candidate> choose(float highest, float threshold, SamplerScratch& scratch,
                                    const ForEach& for_each) const;
  TokenId draw(std::span<const Candidate> candidates);
  double next_uniform() const;

  SamplingParams params_;
  std::shared_ptr<const SamplerVocabulary> vocabulary_;
  bool penalizes_;
  bool lowers_alone_;   // no bias and no penalty raises a logit
  TokenCounts counts_;  // empty unless penalizes_
  std::vector<TokenId> masked_;
  int masked_before_ = 0;
  uint64_t seed_;
  int tokens_ = 0;
};

/// True when every value is finite.
bool all_finite(std::span<const float> values);
/// Index of the largest value, the first of equals; -inf is a value like others. `values` must not be empty
/// and hold no NaN.
TokenId argmax(std::span<const float> values);
/// The k-th largest of `values`, 1 <= k <= values.size(); `heap` is working memory.
float kth_largest(std::span<const float> values, size_t k, std::vector<float>& heap);

}  // namespace qwench
