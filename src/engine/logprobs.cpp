#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>

#include "engine/sampler.h"
#include "qwench/error.h"

namespace qwench {
namespace {

/// log softmax(x) = x - highest - log_sum, kept apart because their sum would round log_sum away at large
/// logits.
struct Normalizer {
  double highest;
  double log_sum;

  float logprob(float logit) const {
    return static_cast<float>(static_cast<double>(logit) - highest - log_sum);
  }
};

Normalizer normalizer_of(std::span<const float> logits) {
  if (!all_finite(logits)) {
    throw Error(
        ErrorKind::numeric,
        "the model gave logits that are not finite; its weights or this engine's arithmetic are broken");
  }
  const auto highest = static_cast<double>(logits[static_cast<size_t>(argmax(logits))]);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return {highest, std::log(sum)};
}

std::vector<std::pair<TokenId, float>> best(std::span<const float> logits, const Normalizer& normalizer,
                                            int top, int valid_ids) {
  const std::span<const float> valid =
      logits.first(std::min(logits.size(), static_cast<size_t>(std::max(0, valid_ids))));
  const size_t count = std::min(valid.size(), static_cast<size_t>(std::max(0, top)));
  std::vector<std::pair<TokenId, float>> list;
  if (count == 0) return list;
  std::vector<float> heap;
  const float threshold = kth_largest(valid, count, heap);
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i] >= threshold) list.emplace_back(static_cast<TokenId>(i), valid[i]);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  list.resize(count);
  for (auto& [id, value] : list) value = normalizer.logprob(value);
  return list;
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const Normalizer normalizer = normalizer_of(logits);
  return normalizer.highest + normalizer.log_sum;
}

TokenLogprob token_logprob(std::span<const float> logits, TokenId id, int top, int valid_ids) {
  const Normalizer normalizer = normalizer_of(logits);
  return {id, normalizer.logprob(logits[static_cast<size_t>(id)]), best(logits, normalizer, top, valid_ids)};
}

std::vector<std::pair<TokenId, float>> top_logprobs(std::span<const float> logits, int top, int valid_ids) {
  return best(logits, normalizer_of(logits), top, valid_ids);
}

}  // namespace qwench
