#include "verify/perplexity.h"
#include "kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "qwench/error.h"
#include "verify_files.h"

namespace qwench {
namespace {

using test::GoldenModel;

TEST(SlidingWindows, ScoreEveryTokenButTheFirstOnce) {
  for (const int64_t length : {2, 3, 10, 64, 101}) {
    for (const int64_t context : {2, 3, 16, 200}) {
      for (int64_t stride = 1; stride < context; ++stride) {
        std::vector<int> scored(static_cast<size_t>(length));
        for (const TextWindow& window : sliding_windows(length, context, stride)) {
          EXPECT_LE(window.end - window.begin, context);
          EXPECT_GT(window.first_scored, window.begin);
          for (int64_t i = window.first_scored; i < window.end; ++i) ++scored[static_cast<size_t>(i)];
        }
        std::vector<int> wanted(scored.size(), 1);
        wanted[0] = 0;
        ASSERT_EQ(scored, wanted) << length << " tokens, windows of " << context << ", " << stride
                                  << " apart";
      }
    }
  }
}

TEST(SlidingWindows, WithoutOverlapLoseTheFirstTokenOfEach) {
  const std::vector<TextWindow> windows = sliding_windows(10, 4, 4);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[1].begin, 4);
  EXPECT_EQ(windows[1].first_scored, 5);
  EXPECT_EQ(windows[2].end, 10);
}

TEST(SlidingWindows, RefuseWhatIsNotPossible) {
  EXPECT_THROW(sliding_windows(1, 16, 8), Error);
  EXPECT_THROW(sliding_windows(10, 1, 1), Error);
  EXPECT_THROW(sliding_windows(10, 4, 0), Error);
  EXPECT_THROW(sliding_windows(10, 4, 5), Error);
}

TEST(Perplexity, OfOneWindowEqualsTheOfficialImplementations) {
  for (const std::string& name : test::dense_golden_models()) {
    const GoldenModel golden(name);
    const auto ids = golden.json()["perplexity"]["ids"].get<std::vector<TokenId>>();
    const auto subject = test::subject_of(name, static_cast<int>(ids.size()));
    const Perplexity result = measure_perplexity(*subject, ids, static_cast<int64_t>(ids.size()),
                                                 1 + static_cast<int64_t>(ids.size()) / 2);
    EXPECT_EQ(result.scored, golden.json()["perplexity"]["count"].get<int64_t>());
    EXPECT_NEAR(result.mean_nll, golden.json()["perplexity"]["mean_nll"].get<double>(), 1e-4) << name;
    EXPECT_NEAR(result.perplexity() / golden.json()["perplexity"]["ppl"].get<double>(), 1, 1e-4) << name;
    EXPECT_GT(result.standard_error, 0);
  }
}

TEST(Perplexity, OfSlidingWindowsIsThatOfEachWindowOnItsOwn) {
  const GoldenModel golden("qwen3-tiny-bf16-tied");
  const auto ids = golden.json()["perplexity"]["ids"].get<std::vector<TokenId>>();
  const auto subject = test::subject_of("qwen3-tiny-bf16-tied", 64);
  double sum = 0;
  int64_t count = 0;
  for (const TextWindow& window : sliding_windows(64, 24, 10)) {
    const std::span<const TokenId> text = std::span<const TokenId>(ids).subspan(
        static_cast<size_t>(window.begin), static_cast<size_t>(window.end - window.begin));
    subject->run(text, 0, 1, 0, [&](int position, std::span<const float> logits) {
      const int64_t next = window.begin + position + 1;
      if (next < window.first_scored || next >= window.end) return;
      double total = 0;
      for (const float logit : logits) total += std::exp(static_cast<double>(logit));
      sum += std::log(total) - logits[static_cast<size_t>(ids[static_cast<size_t>(next)])];
      ++count;
    });
  }
  int calls = 0;
  const Perplexity result =
      measure_perplexity(*subject, ids, 24, 10, [&](const Perplexity&, double) { ++calls; });
  EXPECT_EQ(result.scored, 63);
  EXPECT_EQ(count, 63);
  EXPECT_NEAR(result.mean_nll, sum / 63, 1e-9);
  EXPECT_EQ(calls, 5);
}

TEST(CompareModels, AModelEqualsItself) {
  const auto a = test::subject_of("qwen2-tiny-f16", 64);
  const auto b = test::subject_of("qwen2-tiny-f16", 64, 1, DType::f32);
  const auto ids = GoldenModel("qwen2-tiny-f16").json()["perplexity"]["ids"].get<std::vector<TokenId>>();
  const Divergence::Summary summary = compare_models(*a, *b, ids, 32, 16);
  EXPECT_EQ(summary.positions, 63);
  // Tiles sum up products with f16 in another order than multiply-adds those with f32.
  const double rounding = current_isa() == "amx" ? 1e-9 : 0.0;
  EXPECT_LE(summary.max, rounding);
  EXPECT_LE(summary.mean, rounding);
  EXPECT_EQ(summary.top1_agreement, 1);
  EXPECT_NEAR(summary.nll_a, summary.nll_b, 1e4 * rounding);
}

TEST(CompareModels, RoundedWeightsAreNearAndAnotherModelIsFar) {
  const auto ids = GoldenModel("qwen3-tiny-f32").json()["perplexity"]["ids"].get<std::vector<TokenId>>();
  const auto a = test::subject_of("qwen3-tiny-f32", 64);
  const auto rounded = test::subject_of("qwen3-tiny-f32", 64, 1, DType::bf16);
  const Divergence::Summary near = compare_models(*a, *rounded, ids, 64, 32);
  EXPECT_GT(near.mean, 0);
  EXPECT_LT(near.mean, 0.02);
  EXPECT_GT(near.top1_agreement, 0.85);
  EXPECT_LE(near.median, near.percentile_99);
  EXPECT_LE(near.percentile_99, near.max);
  const auto other = test::subject_of("llama-tiny", 64);
  ASSERT_EQ(other->vocab(), a->vocab());
  EXPECT_GT(compare_models(*a, *other, ids, 64, 32).mean, 1);
}

TEST(CompareModels, OtherVocabulariesAreRefused) {
  const auto a = test::subject_of("qwen3-tiny-f32", 16);
  const auto b = test::subject_of("qwen2-tiny-untied-bf16", 16);
  const std::vector<TokenId> ids{1, 2, 3};
  EXPECT_THROW(compare_models(*a, *b, ids, 3, 2), Error);
}

TEST(Divergence, IsTheTextbooksOnTwoOutcomes) {
  // p = (3/4, 1/4), q = (1/2, 1/2)
  const std::vector<float> p{std::log(3.0F), 0};
  const std::vector<float> q{5, 5};
  Divergence divergence;
  divergence.add(p, q, 1);
  const Divergence::Summary summary = divergence.summary();
  EXPECT_NEAR(summary.mean, 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-7);
  EXPECT_NEAR(summary.nll_a, std::log(4.0), 1e-7);
  EXPECT_NEAR(summary.nll_b, std::log(2.0), 1e-7);
  EXPECT_EQ(summary.top1_agreement, 1);
}

TEST(Divergence, PercentilesAreOfTheNearestRank) {
  Divergence divergence;
  for (int i = 1; i <= 200; ++i) {
    const std::vector<float> p{0, 0};
    const std::vector<float> q{0, 0.01F * static_cast<float>(i)};
    divergence.add(p, q);
  }
  const auto kl = [](double x) { return std::log((1 + std::exp(x)) / 2) - x / 2; };
  EXPECT_NEAR(divergence.summary().median, kl(1.0), 1e-6);
  EXPECT_NEAR(divergence.summary().percentile_99, kl(1.98), 1e-6);
  EXPECT_NEAR(divergence.summary().max, kl(2.0), 1e-6);
}

}  // namespace
}  // namespace qwench
