#include "engine/logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace qwench {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pair;

const std::vector<float> kLogits{std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(1.0f)};

TEST(Logprobs, AreTheLogarithmOfTheSoftmax) {
  const TokenLogprob chosen = token_logprob(kLogits, 2, 2, 4);
  EXPECT_EQ(chosen.id, 2);
  EXPECT_NEAR(chosen.logprob, std::log(0.25), 1e-6);
  EXPECT_THAT(chosen.top, ElementsAre(Pair(1, FloatNear(std::log(0.5f), 1e-6f)),
                                      Pair(2, FloatNear(std::log(0.25f), 1e-6f))));
}

TEST(Logprobs, LogSumExpIsTheNormalizer) { EXPECT_NEAR(log_sum_exp(kLogits), std::log(8.0), 1e-6); }

TEST(Logprobs, EqualAlternativesComeByTheirIds) {
  EXPECT_THAT(top_logprobs(kLogits, 4, 4), ElementsAre(Pair(1, testing::_), Pair(2, testing::_),
                                                       Pair(0, testing::_), Pair(3, testing::_)));
}

TEST(Logprobs, PaddingRowsCountInTheSumAndAreNotListed) {
  EXPECT_THAT(top_logprobs(kLogits, 20, 1), ElementsAre(Pair(0, FloatNear(std::log(0.125f), 1e-6f))));
}

TEST(Logprobs, NoAlternativesWhenNoneAreAskedFor) {
  EXPECT_TRUE(token_logprob(kLogits, 0, 0, 4).top.empty());
}

TEST(Logprobs, HugeLogitsDoNotOverflow) {
  const std::vector<float> logits{1e30f, 1e30f, -1e30f};
  EXPECT_NEAR(token_logprob(logits, 0, 1, 3).logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(token_logprob(logits, 2, 0, 3).logprob, -1e30f - 1e30f);
}

TEST(Logprobs, LogitsThatAreNotFiniteAreAnError) {
  const std::vector<float> logits{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(token_logprob(logits, 0, 0, 2), Error);
}

}  // namespace
}  // namespace qwench
