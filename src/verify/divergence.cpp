#include "verify/divergence.h"

#include <algorithm>
#include <cmath>

#include "engine/logprobs.h"

namespace qwench {
namespace {

size_t best(std::span<const float> logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The nearest-rank percentile: the least value that at least this share of the values does not exceed.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace

double Divergence::Summary::perplexity_a() const { return std::exp(nll_a); }
double Divergence::Summary::perplexity_b() const { return std::exp(nll_b); }

void Divergence::add(std::span<const float> a, std::span<const float> b, std::optional<TokenId> next) {
  const double sum_a = log_sum_exp(a);
  const double sum_b = log_sum_exp(b);
  double kl = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double log_p = a[i] - sum_a;
    kl += std::exp(log_p) * (log_p - (b[i] - sum_b));
  }
  kl = std::max(kl, 0.0);  // rounding may leave -1e-17
  kl_.push_back(kl);
  kl_sum_ += kl;
  agreed_ += best(a) == best(b) ? 1 : 0;
  if (next) {
    const auto id = static_cast<size_t>(*next);
    ++scored_;
    nll_a_ += sum_a - a[id];
    nll_b_ += sum_b - b[id];
  }
}

Divergence::Summary Divergence::summary() const {
  Summary summary;
  if (kl_.empty()) return summary;
  std::vector<double> sorted = kl_;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(kl_.size());
  summary.positions = static_cast<int64_t>(kl_.size());
  summary.mean = kl_sum_ / count;
  summary.median = percentile(sorted, 0.5);
  summary.percentile_99 = percentile(sorted, 0.99);
  summary.max = sorted.back();
  summary.top1_agreement = static_cast<double>(agreed_) / count;
  summary.scored = scored_;
  if (scored_ > 0) {
    summary.nll_a = nll_a_ / static_cast<double>(scored_);
    summary.nll_b = nll_b_ / static_cast<double>(scored_);
  }
  return summary;
}

}  // namespace qwench
