#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "backend/backend.h"
#include "kernels/top_k.h"
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

/// The `k` largest logits, as a backend gives them.
struct Largest {
  Largest(const std::vector<float>& logits, int valid, int k)
      : ids(static_cast<size_t>(k)), values(static_cast<size_t>(k)) {
    top_k(logits.data(), valid, k, ids.data(), values.data());
  }
  TopLogits view() const { return {ids, values}; }

  std::vector<TokenId> ids;
  std::vector<float> values;
};

/// Settings of all kinds that the largest logits may settle.
SamplingParams random_params(std::mt19937& random) {
  const auto any = [&](std::initializer_list<float> of) { return *(of.begin() + random() % of.size()); };
  SamplingParams params;
  params.temperature = any({0, 0.01F, 0.7F, 1, 5});
  params.top_k = static_cast<int>(any({1, 2, 5, 20, 64, 127}));
  params.top_p = any({0.3F, 0.8F, 1, 1});
  params.min_p = any({0, 0, 0.05F, 0.5F});
  params.repetition_penalty = any({1, 1, 1.05F, 1.3F});
  params.presence_penalty = any({0, 0, 0.5F});
  params.frequency_penalty = any({0, 0, 0.3F});
  if (random() % 4 == 0) params.logit_bias = {{3, -1.0F}, {40, -100.0F}};
  params.seed = random();
  return params;
}

TEST(SamplerOfTheLargest, DrawsAsFromTheWholeRowOrNotAtAll) {
  std::mt19937 random(11);
  SamplerScratch scratch;
  int settled = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const int valid = round % 3 == 0 ? 50 : 700;
    const SamplingParams params = random_params(random);
    std::vector<TokenId> prompt(random() % 60);
    for (TokenId& id : prompt) id = static_cast<TokenId>(random() % static_cast<unsigned>(valid));
    const std::vector<TokenId> excluded =
        round % 5 == 0 ? std::vector<TokenId>{1, 2, 17} : std::vector<TokenId>{};
    Sampler whole = make(params, valid, excluded, prompt);
    Sampler top = make(params, valid, excluded, prompt);
    for (Sampler* sampler : {&whole, &top}) {
      if (round % 6 == 0) sampler->mask_until({4, 5}, 2);
    }
    for (int step = 0; step < 4; ++step) {
      std::vector<float> logits = random_logits(static_cast<size_t>(valid) + 3, random());
      if (round % 4 == 1) {
        for (float& logit : logits) logit = std::round(logit);
      }
      const int wanted = top.top_wanted();
      ASSERT_GT(wanted, 0);
      const Largest largest(logits, valid, std::min(wanted, valid));
      std::vector<float> row = logits;
      const auto all = whole.distribution(row, scratch);
      const std::vector<Candidate> want(all.begin(), all.end());
      const auto got = top.distribution(largest.view(), scratch);
      if (got) {
        ++settled;
        ASSERT_EQ(got->size(), want.size()) << "round " << round;
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_EQ((*got)[i].id, want[i].id) << "round " << round << ", place " << i;
          ASSERT_EQ((*got)[i].probability, want[i].probability) << "round " << round << ", place " << i;
        }
      }
      row = logits;
      const TokenId drawn = whole.sample(row, scratch);
      const auto from_top = top.sample(largest.view(), scratch);
      ASSERT_EQ(from_top.has_value(), got.has_value());
      ASSERT_EQ(from_top.value_or(drawn), drawn) << "round " << round;
      if (!from_top) top.accept(drawn);
    }
  }
  std::printf("the largest logits settled %d of %d tokens\n", settled, 4 * kRounds);
  EXPECT_GT(settled, 2 * kRounds);
}

TEST(SamplerOfTheLargest, TiesThatMayGoOnBeyondThemSettleNothing) {
  SamplingParams params = off();
  params.top_k = 2;
  Sampler sampler = make(params, 6);
  SamplerScratch scratch;
  EXPECT_EQ(sampler.top_wanted(), 3);
  EXPECT_FALSE(sampler.sample(Largest({5, 4, 4, 4, 1, 1}, 6, 3).view(), scratch));
  EXPECT_EQ(sampler.tokens(), 0);
  // One more shows where they end.
  EXPECT_EQ(sampler.distribution(Largest({5, 4, 4, 4, 1, 1}, 6, 5).view(), scratch)->size(), 4U);
}

TEST(SamplerOfTheLargest, WhatIsLoweredMakesWayForNothingUnseen) {
  SamplingParams params = greedy_params();
  params.repetition_penalty = 2;
  SamplerScratch scratch;
  Sampler sampler = make(params, 4, {}, {0, 1});
  // 0 and 1 become 5 and 4. Of two, the last may be followed by its equal.
  EXPECT_FALSE(sampler.sample(Largest({10, 8, 9, 1}, 4, 2).view(), scratch));
  EXPECT_EQ(sampler.sample(Largest({10, 8, 9, 1}, 4, 3).view(), scratch), 2);
}

TEST(SamplerOfTheLargest, AreNotEnoughWhereALogitMayRiseOrAllAreKept) {
  EXPECT_EQ(make(off(), 3).top_wanted(), 0);
  SamplingParams params = off();
  params.top_k = kMostTop;
  EXPECT_EQ(make(params, 500).top_wanted(), 0);
  params.top_k = 20;
  EXPECT_EQ(make(params, 500).top_wanted(), 21);
  params.presence_penalty = -0.1F;
  EXPECT_EQ(make(params, 500).top_wanted(), 0);
  params.presence_penalty = 0.1F;
  EXPECT_EQ(make(params, 500).top_wanted(), kMostTop);
  params.logit_bias = {{1, 0.5F}};
  EXPECT_EQ(make(params, 500).top_wanted(), 0);
  params.logit_bias = {};
  params.repetition_penalty = 0.9F;
  EXPECT_EQ(make(params, 500).top_wanted(), 0);
}

TEST(SamplerOfTheLargest, WhatIsNotFiniteIsAnErrorAndSoIsNothingLeft) {
  SamplingParams params = off();
  params.top_k = 1;
  SamplerScratch scratch;
  Sampler sampler = make(params, 3);
  EXPECT_THROW(sampler.sample(Largest({1, 2, INFINITY}, 3, 2).view(), scratch), Error);
  Sampler banned = make(params, 2, {0, 1});
  EXPECT_THROW(banned.sample(Largest({1, 2}, 2, 2).view(), scratch), Error);
}

}  // namespace
}  // namespace qwench
