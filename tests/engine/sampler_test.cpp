#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "qwench/error.h"

namespace qwench {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Not;

SamplingParams off() {
  SamplingParams params;
  params.temperature = 1;
  params.top_k = 0;
  params.top_p = 1;
  params.seed = 7;
  return params;
}

SamplingParams greedy_params() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

Sampler make(const SamplingParams& params, int ids, std::vector<TokenId> excluded = {},
             std::vector<TokenId> prompt = {}) {
  return Sampler(params, std::make_shared<SamplerVocabulary>(SamplerVocabulary{ids, std::move(excluded)}),
                 prompt);
}

std::vector<TokenId> draw(Sampler& sampler, const std::vector<float>& logits, int count) {
  SamplerScratch scratch;
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) {
    std::vector<float> copy = logits;
    ids.push_back(sampler.sample(copy, scratch));
  }
  return ids;
}

std::vector<float> random_logits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

TEST(Sampler, GreedyTakesTheFirstOfEqualMaxima) {
  Sampler sampler = make(greedy_params(), 5);
  EXPECT_THAT(draw(sampler, {1, 3, 2, 3, 3}, 2), Each(1));
}

TEST(Sampler, GreedyChangesNoLogit) {
  Sampler sampler = make(greedy_params(), 3);
  std::vector<float> logits{1, 3, 2};
  SamplerScratch scratch;
  sampler.sample(logits, scratch);
  EXPECT_THAT(logits, ElementsAre(1, 3, 2));
  EXPECT_TRUE(sampler.is_argmax());
}

TEST(Sampler, IsArgmaxOnlyWhereNothingMovesALogit) {
  SamplingParams params = greedy_params();
  params.repetition_penalty = 1.1f;
  EXPECT_FALSE(make(params, 3).is_argmax());
  params = greedy_params();
  params.logit_bias = {{1, 2.0f}};
  EXPECT_FALSE(make(params, 3).is_argmax());
  EXPECT_FALSE(make(off(), 3).is_argmax());
  EXPECT_FALSE(make(greedy_params(), 3, {1}).is_argmax());
  Sampler sampler = make(greedy_params(), 3);
  sampler.mask_until({2}, 1);
  EXPECT_FALSE(sampler.is_argmax());
  sampler.accept(0);
  EXPECT_TRUE(sampler.is_argmax());
}

TEST(Sampler, PaddingRowsAreNeverDrawnNorLookedAt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Sampler best = make(greedy_params(), 3);
  EXPECT_THAT(draw(best, {1, 2, 0, 100, nan}, 1), ElementsAre(1));
  Sampler random = make(off(), 3);
  EXPECT_THAT(draw(random, {1, 2, 0, 100, nan}, 200), Each(testing::Lt(3)));
}

TEST(Sampler, IdsWithoutATokenAreNeverDrawn) {
  Sampler best = make(greedy_params(), 3, {1});
  EXPECT_THAT(draw(best, {1, 50, 0}, 1), ElementsAre(0));
  Sampler random = make(off(), 3, {1});
  EXPECT_THAT(draw(random, {1, 50, 0}, 200), Not(Contains(1)));
}

TEST(Sampler, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const SamplingParams& params : {greedy_params(), off()}) {
      Sampler sampler = make(params, 3);
      try {
        draw(sampler, {1, 2, bad}, 1);
        FAIL() << "drew a token beside " << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::numeric);
      }
    }
  }
}

TEST(Sampler, StopIdsAreMaskedUntilMinTokens) {
  Sampler sampler = make(greedy_params(), 3);
  sampler.mask_until({1}, 2);
  EXPECT_THAT(draw(sampler, {1, 5, 0}, 3), ElementsAre(0, 0, 1));
}

TEST(Sampler, MaskingEverythingIsAnError) {
  Sampler sampler = make(greedy_params(), 2);
  sampler.mask_until({0, 1}, 1);
  EXPECT_THROW(draw(sampler, {1, 2}, 1), Error);
}

TEST(Sampler, LogitBiasMovesTheChoice) {
  SamplingParams params = greedy_params();
  params.logit_bias = {{0, 100.0f}, {1, -100.0f}};
  Sampler sampler = make(params, 3);
  EXPECT_THAT(draw(sampler, {1, 50, 0}, 1), ElementsAre(0));
}

TEST(Sampler, LogitBiasOfAnIdThatDoesNotExistIsAnError) {
  SamplingParams params = greedy_params();
  params.logit_bias = {{3, 1.0f}};
  EXPECT_THROW(make(params, 3), Error);
}

TEST(Sampler, BiasComesBeforeTheRepetitionPenalty) {
  SamplingParams params = off();
  params.logit_bias = {{0, 4.0f}};
  params.repetition_penalty = 2;
  Sampler sampler = make(params, 2, {}, {0});
  std::vector<float> logits{0, 2};
  SamplerScratch scratch;
  for (const Candidate& c : sampler.distribution(logits, scratch))
    EXPECT_NEAR(c.probability, 0.5, 1e-9) << c.id;
}

TEST(Sampler, PenaltiesFollowTheOutputAsItGrows) {
  SamplingParams params = greedy_params();
  params.frequency_penalty = 1;
  Sampler sampler = make(params, 3);
  EXPECT_THAT(draw(sampler, {2.5f, 1.2f, 0}, 5), ElementsAre(0, 0, 1, 0, 1));
}

TEST(Sampler, SameSeedSameTokens) {
  const std::vector<float> logits = random_logits(1000, 1);
  SamplingParams params = off();
  Sampler first = make(params, 1000);
  Sampler second = make(params, 1000);
  const auto drawn = draw(first, logits, 50);
  EXPECT_EQ(drawn, draw(second, logits, 50));
  params.seed = 8;
  Sampler other = make(params, 1000);
  EXPECT_NE(drawn, draw(other, logits, 50));
}

TEST(Sampler, TheGeneratorIsTheSameEverywhere) {
  // Uniform logits and a power of two of them: the id is the drawn number's leading bits.
  Sampler sampler = make(off(), 256);
  EXPECT_THAT(draw(sampler, std::vector<float>(256, 0.0f), 4), ElementsAre(99, 4, 230, 149));
}

TEST(Sampler, WithoutASeedOneIsDrawn) {
  SamplingParams params = off();
  params.seed.reset();
  EXPECT_NE(make(params, 3).seed(), make(params, 3).seed());
}

TEST(Sampler, DrawsFollowTheDistribution) {
  Sampler sampler = make(off(), 3);
  const auto ids = draw(sampler, {std::log(0.5f), std::log(0.3f), std::log(0.2f)}, 20000);
  for (const auto& [id, share] : {std::pair{0, 0.5}, {1, 0.3}, {2, 0.2}}) {
    EXPECT_NEAR(static_cast<double>(std::count(ids.begin(), ids.end(), id)) / 20000, share, 0.015) << id;
  }
}

TEST(Sampler, HugeScoresOverATinyTemperatureStayFinite) {
  SamplingParams params = off();
  params.temperature = Sampler::kLeastTemperature;
  Sampler sampler = make(params, 3);
  EXPECT_THAT(draw(sampler, {3e38f, -3e38f, 0}, 3), Each(0));
}

/// The textbook way, on all of the vocabulary: sort, then cut.
std::vector<Candidate> by_sorting(std::vector<float> logits, const SamplingParams& params) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    all.push_back({static_cast<TokenId>(i), std::exp(static_cast<double>(logits[i] / params.temperature))});
  }
  std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.probability > b.probability; });
  if (params.top_k > 0) all.resize(static_cast<size_t>(params.top_k));
  double total = 0;
  for (const auto& c : all) total += c.probability;
  double sum = 0;
  size_t kept = 0;
  while (kept < all.size() && sum < static_cast<double>(params.top_p) * total) sum += all[kept++].probability;
  all.resize(kept);
  std::erase_if(
      all, [best = all[0].probability, &params](auto& c) { return c.probability < params.min_p * best; });
  total = 0;
  for (const auto& c : all) total += c.probability;
  for (auto& c : all) c.probability /= total;
  return all;
}

TEST(Sampler, SelectionWithoutSortingEqualsSorting) {
  const std::vector<float> logits = random_logits(20000, 3);
  SamplerScratch scratch;
  int compared = 0;
  for (const int top_k : {0, 1, 20, 64, 5000}) {
    for (const float top_p : {0.05f, 0.5f, 0.8f, 0.95f, 0.999f}) {
      for (const float min_p : {0.0f, 0.05f}) {
        SamplingParams params = off();
        params.temperature = 0.6f;
        params.top_k = top_k;
        params.top_p = top_p;
        params.min_p = min_p;
        std::vector<float> copy = logits;
        const auto got = make(params, 20000).distribution(copy, scratch);
        const auto expected = by_sorting(logits, params);
        ASSERT_EQ(got.size(), expected.size()) << top_k << ' ' << top_p << ' ' << min_p;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i].id, expected[i].id);
          ASSERT_NEAR(got[i].probability, expected[i].probability, 1e-9);
        }
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 50);
}

TEST(Sampler, ScratchGrowsOnceAndIsThenKept) {
  const std::vector<float> logits = random_logits(5000, 4);
  SamplingParams params = off();
  params.top_p = 0.9f;
  Sampler sampler = make(params, 5000);
  SamplerScratch scratch;
  std::vector<float> copy = logits;
  sampler.sample(copy, scratch);
  const Candidate* before = scratch.candidates.data();
  for (int i = 0; i < 20; ++i) {
    copy = logits;
    sampler.sample(copy, scratch);
  }
  EXPECT_EQ(scratch.candidates.data(), before);
}

TEST(KthLargest, EqualsSortingForHeapAndPartition) {
  std::vector<float> values = random_logits(9001, 5);
  values[17] = values[18];
  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<float> heap;
  for (const size_t k : {1U, 2U, 3U, 20U, 1000U, 2048U, 2049U, 9000U, 9001U}) {
    EXPECT_EQ(kth_largest(values, k, heap), sorted[k - 1]) << k;
  }
}

TEST(Argmax, EqualsMaxElementAtEverySize) {
  for (size_t n = 1; n < 300; n += 7) {
    const std::vector<float> values = random_logits(n, static_cast<uint32_t>(n));
    EXPECT_EQ(argmax(values), std::max_element(values.begin(), values.end()) - values.begin()) << n;
  }
}

TEST(TokenCounts, CountsPromptAndOutputApart) {
  TokenCounts counts;
  for (TokenId id = 0; id < 5000; ++id) counts.add_prompt(id * 31);
  for (TokenId id = 0; id < 5000; id += 2) counts.add_output(id * 31);
  counts.add_output(0);
  ASSERT_EQ(counts.entries().size(), 5000U);
  for (TokenId i = 0; i < 5000; ++i) {
    const auto& entry = counts.entries()[static_cast<size_t>(i)];
    ASSERT_EQ(entry.id, i * 31);
    ASSERT_EQ(entry.output, i == 0 ? 2 : i % 2 == 0 ? 1 : 0);
  }
}

}  // namespace
}  // namespace qwench
