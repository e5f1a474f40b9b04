#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// How far the next-token distributions of model B lie from those of model A, over many positions. Logarithms
/// are natural, sums f64.
class Divergence {
 public:
  struct Summary {
    int64_t positions = 0;
    double mean = 0;  ///< of KL(A || B) = Σ p_A (ln p_A - ln p_B), in nats
    double median = 0;
    double percentile_99 = 0;
    double max = 0;
    double top1_agreement = 0;  ///< share of positions where both find the same token the most probable
    int64_t scored = 0;         ///< positions whose next token is known
    double nll_a = 0;           ///< mean -ln p_A(next token)
    double nll_b = 0;
    double perplexity_a() const;
    double perplexity_b() const;
  };

  /// One position: the logits [vocab] of both, and the token that follows in the text, if any. Throws Error
  /// (numeric) where a logit is not finite.
  void add(std::span<const float> a, std::span<const float> b, std::optional<TokenId> next = {});

  int64_t positions() const { return static_cast<int64_t>(kl_.size()); }
  double running_mean() const { return kl_.empty() ? 0 : kl_sum_ / static_cast<double>(kl_.size()); }
  Summary summary() const;

 private:
  std::vector<double> kl_;  // [positions]
  double kl_sum_ = 0;
  int64_t agreed_ = 0;
  int64_t scored_ = 0;
  double nll_a_ = 0;
  double nll_b_ = 0;
};

}  // namespace qwench
