#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "backend/backend.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr const char* kBrokenLogits =
    "the model gave logits that are not finite; its weights or this engine's arithmetic are broken";
constexpr const char* kNothingLeft = "no token is left to draw: all ids are excluded";

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// A heap that is larger no longer fits the first-level cache, and selection by partition takes over.
constexpr size_t kLargestHeap = 2048;
// Blocks are scanned without a branch per value.
constexpr size_t kScanBlock = 64;

uint64_t seed_of_system() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

uint64_t splitmix64(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBULL;
  return state ^ (state >> 31);
}

float finite(float value) {
  return std::clamp(value, -std::numeric_limits<float>::max(), std::numeric_limits<float>::max());
}

/// Finds an id's logit in a row; null for what is none of its ids.
class RowLookup {
 public:
  explicit RowLookup(std::span<float> logits) : logits_(logits) {}
  float* operator()(TokenId id) const {
    const bool there = id >= 0 && static_cast<size_t>(id) < logits_.size();
    return there ? &logits_[static_cast<size_t>(id)] : nullptr;
  }

 private:
  std::span<float> logits_;
};

/// The same in pairs that are sorted by id.
class PairLookup {
 public:
  explicit PairLookup(std::span<std::pair<TokenId, float>> pairs) : pairs_(pairs) {}
  float* operator()(TokenId id) const {
    const auto found = std::lower_bound(pairs_.begin(), pairs_.end(), id,
                                        [](const auto& pair, TokenId wanted) { return pair.first < wanted; });
    return found != pairs_.end() && found->first == id ? &found->second : nullptr;
  }

 private:
  std::span<std::pair<TokenId, float>> pairs_;
};

void apply_filter(std::span<float> logits, const TokenFilter& filter, std::vector<float>& kept) {
  const RowLookup at(logits);
  kept.clear();
  for (const TokenId id : filter.also) kept.push_back(at(id) == nullptr ? -kInfinity : *at(id));
  if (filter.mask != nullptr) {
    for (size_t i = 0; i < logits.size(); i += 64) {
      const uint64_t word = filter.mask->words[i / 64];
      const size_t end = std::min(logits.size(), i + 64);
      if (word == 0) {
        std::fill(logits.begin() + static_cast<std::ptrdiff_t>(i),
                  logits.begin() + static_cast<std::ptrdiff_t>(end), -kInfinity);
        continue;
      }
      for (size_t k = i; k < end; ++k) {
        if ((word >> (k - i) & 1) == 0) logits[k] = -kInfinity;
      }
    }
  }
  for (const TokenId id : filter.never) {
    if (float* logit = at(id)) *logit = -kInfinity;
  }
  for (size_t i = 0; i < filter.also.size(); ++i) {
    if (float* logit = at(filter.also[i])) *logit = kept[i];
  }
}

}  // namespace

bool all_finite(std::span<const float> values) {
  // As integers, so that the loop is vectorized without relaxing float arithmetic.
  uint32_t bad = 0;
  for (const float value : values) {
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & 0x7F800000U) == 0x7F800000U);
  }
  return bad == 0;
}

TokenId argmax(std::span<const float> values) {
  size_t best = 0;
  for (size_t begin = 1; begin < values.size(); begin += kScanBlock) {
    const size_t end = std::min(begin + kScanBlock, values.size());
    const float bound = values[best];
    uint32_t any = 0;
    for (size_t i = begin; i < end; ++i) any |= static_cast<uint32_t>(values[i] > bound);
    if (any == 0) continue;
    for (size_t i = begin; i < end; ++i) {
      if (values[i] > values[best]) best = i;
    }
  }
  return static_cast<TokenId>(best);
}

float kth_largest(std::span<const float> values, size_t k, std::vector<float>& heap) {
  if (k > kLargestHeap) {
    heap.assign(values.begin(), values.end());
    const auto kth = heap.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(heap.begin(), kth, heap.end(), std::greater<>());
    return *kth;
  }
  // The k largest so far, the least of them in front.
  heap.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k));
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  for (size_t begin = k; begin < values.size(); begin += kScanBlock) {
    const size_t end = std::min(begin + kScanBlock, values.size());
    const float bound = heap.front();
    uint32_t any = 0;
    for (size_t i = begin; i < end; ++i) any |= static_cast<uint32_t>(values[i] > bound);
    if (any == 0) continue;
    for (size_t i = begin; i < end; ++i) {
      if (values[i] <= heap.front()) continue;
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.back() = values[i];
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  return heap.front();
}

Sampler::Sampler(const SamplingParams& params, std::shared_ptr<const SamplerVocabulary> vocabulary,
                 std::span<const TokenId> prompt)
    : params_(params),
      vocabulary_(std::move(vocabulary)),
      penalizes_(params.repetition_penalty != 1 || params.presence_penalty != 0 ||
                 params.frequency_penalty != 0),
      lowers_alone_(params.repetition_penalty >= 1 && params.presence_penalty >= 0 &&
                    params.frequency_penalty >= 0 &&
                    std::all_of(params.logit_bias.begin(), params.logit_bias.end(),
                                [](const auto& bias) { return bias.second <= 0; })),
      seed_(params.seed ? *params.seed : seed_of_system()) {
  for (const auto& [id, bias] : params_.logit_bias) {
    if (id < 0 || id >= vocabulary_->valid_ids) {
      throw Error(ErrorKind::invalid_argument, fmt::format("logit_bias names token {}, expected ids below {}",
                                                           id, vocabulary_->valid_ids));
    }
  }
  if (params_.repetition_penalty != 1) {
    for (const TokenId id : prompt) counts_.add_prompt(id);
  }
}

void Sampler::mask_until(std::vector<TokenId> ids, int tokens) {
  masked_ = std::move(ids);
  masked_before_ = tokens;
}

bool Sampler::is_argmax() const {
  return params_.temperature < kLeastTemperature && !penalizes_ && params_.logit_bias.empty() &&
         !masks_now() && vocabulary_->excluded.empty();
}

int Sampler::top_wanted() const {
  const int k = params_.temperature < kLeastTemperature ? 1 : params_.top_k;
  if (!lowers_alone_ || k < 1 || k >= kMostTop) return 0;
  const bool lowers =
      penalizes_ || !params_.logit_bias.empty() || masks_now() || !vocabulary_->excluded.empty();
  // One more shows that no tie was left out; those that are lowered make way for many more.
  return lowers ? kMostTop : k + 1;
}

void Sampler::accept(TokenId id) {
  ++tokens_;
  if (penalizes_) counts_.add_output(id);
}

template <typename At>
void Sampler::penalize(const At& at) const {
  for (const auto& [id, bias] : params_.logit_bias) {
    if (float* logit = at(id)) *logit = finite(*logit + bias);
  }
  for (const auto& [id, count] : counts_.entries()) {
    float* logit = at(id);
    if (logit == nullptr) continue;
    *logit = finite(*logit < 0 ? *logit * params_.repetition_penalty : *logit / params_.repetition_penalty);
    if (count > 0) {
      *logit =
          finite(*logit - static_cast<float>(count) * params_.frequency_penalty - params_.presence_penalty);
    }
  }
}

template <typename At>
void Sampler::ban(const At& at) const {
  const auto ban_one = [&](TokenId id) {
    if (float* logit = at(id)) *logit = -kInfinity;
  };
  std::for_each(vocabulary_->excluded.begin(), vocabulary_->excluded.end(), ban_one);
  if (masks_now()) std::for_each(masked_.begin(), masked_.end(), ban_one);
}

/// Of adjusted logits, which `for_each` gives in the order of their ids, those that are not below `threshold`
/// and that the later steps leave. `highest` is the largest.
template <typename ForEach>
std::span<const Candidate> Sampler::choose(float highest, float threshold, SamplerScratch& scratch,
                                           const ForEach& for_each) const {
  std::vector<Candidate>& candidates = scratch.candidates;
  candidates.clear();
  // min_p first where top_p is off: neither changes the other's outcome, and little is then left to keep.
  const double least = params_.top_p < 1 ? 0 : params_.min_p;
  const double top = finite(highest / params_.temperature);
  double total = 0;
  for_each([&](TokenId id, float logit) {
    if (logit < threshold || logit == -kInfinity) return;
    const double weight = std::exp(static_cast<double>(finite(logit / params_.temperature)) - top);
    if (weight < least) return;
    candidates.push_back({id, weight});
    total += weight;
  });
  if (params_.top_p < 1) {
    // Tokens below this weight hold less than 1 - top_p together, so the set sought lies above it: sort only
    // that.
    const double floor = (1.0 - params_.top_p) * total / static_cast<double>(candidates.size());
    std::erase_if(candidates, [&](const Candidate& c) { return c.probability < floor; });
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
    });
    double sum = 0;
    size_t kept = 0;
    while (kept < candidates.size() && (kept == 0 || sum < static_cast<double>(params_.top_p) * total)) {
      sum += candidates[kept++].probability;
    }
    candidates.resize(kept);
    std::erase_if(candidates,
                  [&](const Candidate& c) { return c.probability < static_cast<double>(params_.min_p); });
    total = 0;
    for (const Candidate& c : candidates) total += c.probability;
  }
  for (Candidate& c : candidates) c.probability /= total;
  return candidates;
}

std::span<const Candidate> Sampler::distribution(std::span<float> logits, SamplerScratch& scratch,
                                                 const TokenFilter& filter) const {
  const std::span<float> valid = logits.first(static_cast<size_t>(vocabulary_->valid_ids));
  if (!all_finite(valid)) throw Error(ErrorKind::numeric, kBrokenLogits);
  const RowLookup at(valid);
  penalize(at);
  apply_filter(valid, filter, scratch.kept);
  ban(at);
  const TokenId best = valid.empty() ? -1 : argmax(valid);
  const float highest = best < 0 ? -kInfinity : valid[static_cast<size_t>(best)];
  if (highest == -kInfinity) throw Error(ErrorKind::invalid_argument, kNothingLeft);
  if (params_.temperature < kLeastTemperature) {
    scratch.candidates.assign(1, {best, 1.0});
    return scratch.candidates;
  }
  // Division keeps the order, so top_k may choose before it; ties that rounding makes of unequal logits do
  // not count.
  const auto top_k = static_cast<size_t>(params_.top_k);
  const float threshold =
      top_k > 0 && top_k < valid.size() ? kth_largest(valid, top_k, scratch.heap) : -kInfinity;
  return choose(highest, threshold, scratch, [&](const auto& take) {
    for (size_t i = 0; i < valid.size(); ++i) take(static_cast<TokenId>(i), valid[i]);
  });
}

std::optional<std::span<const Candidate>> Sampler::distribution(const TopLogits& top,
                                                                SamplerScratch& scratch) const {
  if (top.ids.front() < 0) throw Error(ErrorKind::numeric, kBrokenLogits);
  std::vector<std::pair<TokenId, float>>& listed = scratch.top;
  listed.clear();
  for (size_t i = 0; i < top.ids.size(); ++i) listed.emplace_back(top.ids[i], top.values[i]);
  std::sort(listed.begin(), listed.end());
  const PairLookup at(listed);
  penalize(at);
  ban(at);
  std::vector<float>& sorted = scratch.heap;
  sorted.clear();
  for (const auto& [id, logit] : listed) sorted.push_back(logit);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());

  const bool greedy = params_.temperature < kLeastTemperature;
  const size_t k = greedy ? 1 : static_cast<size_t>(params_.top_k);
  const bool limits = k > 0 && k < static_cast<size_t>(vocabulary_->valid_ids);
  const bool whole = listed.size() == static_cast<size_t>(vocabulary_->valid_ids);
  if (!whole && !(limits && k <= sorted.size())) return std::nullopt;
  const float threshold = limits ? sorted[k - 1] : -kInfinity;
  // What is not listed is at most the last that is, and nothing was raised.
  if (!whole && !(threshold > top.values.back())) return std::nullopt;
  const float highest = sorted.front();
  if (highest == -kInfinity) throw Error(ErrorKind::invalid_argument, kNothingLeft);
  if (greedy) {
    const auto best =
        std::find_if(listed.begin(), listed.end(), [&](const auto& pair) { return pair.second == highest; });
    scratch.candidates.assign(1, {best->first, 1.0});
    return scratch.candidates;
  }
  return choose(highest, threshold, scratch, [&](const auto& take) {
    for (const auto& [id, logit] : listed) take(id, logit);
  });
}

double Sampler::next_uniform() const {
  const uint64_t bits = splitmix64(seed_ + 0x9E3779B97F4A7C15ULL * (static_cast<uint64_t>(tokens_) + 1));
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

TokenId Sampler::draw(std::span<const Candidate> candidates) {
  TokenId id = candidates.back().id;  // where rounding leaves the sum below the number drawn
  if (candidates.size() > 1) {
    const double drawn = next_uniform();
    double sum = 0;
    for (const Candidate& c : candidates) {
      sum += c.probability;
      if (drawn < sum) {
        id = c.id;
        break;
      }
    }
  }
  accept(id);
  return id;
}

TokenId Sampler::sample(std::span<float> logits, SamplerScratch& scratch, const TokenFilter& filter) {
  return draw(distribution(logits, scratch, filter));
}

std::optional<TokenId> Sampler::sample(const TopLogits& top, SamplerScratch& scratch) {
  const auto candidates = distribution(top, scratch);
  if (!candidates) return std::nullopt;
  return draw(*candidates);
}

}  // namespace qwench
