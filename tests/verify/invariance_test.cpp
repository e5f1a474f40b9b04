// What a request gets does not depend on what runs beside it.
#include "verify/invariance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sanitized.h"
#include "verify_files.h"

namespace qwench {
namespace {

TEST(Invariance, RandomMixesGiveEveryRequestWhatItGetsAlone) {
  int completions = 0;
  int64_t tokens = 0;
  EngineStats total;
  uint64_t seed = 0;
  const int every = test::kSanitized ? 4 : 1;  // of the models, under sanitizers
  int index = 0;
  for (const std::string& model : test::dense_golden_models()) {
    if (index++ % every != 0) continue;
    InvarianceOptions options;
    options.seed = ++seed;
    options.rounds = 2;
    options.requests = 24;
    options.most_tokens = 24;
    options.threads = 3;
    const InvarianceReport report = check_invariance(test::GoldenModel(model).folder(), options);
    EXPECT_TRUE(report.ok()) << model << ": " << report.verdict();
    ASSERT_EQ(report.rounds.size(), 2U);
    for (const InvarianceRound& round : report.rounds) {
      EXPECT_GE(round.completions, round.requests);
      EXPECT_EQ(round.stats.kv_blocks_used, 0);
      completions += round.completions;
      tokens += round.tokens;
      total.preemptions += round.stats.preemptions;
      total.prefix_hits += round.stats.prefix_hits;
      total.draft_hits += round.stats.draft_hits;
      total.finished[2] += round.stats.finished[2];
    }
  }
  std::printf(
      "invariance: %d completions, %ld tokens, %ld preemptions, %ld tokens found in the cache, "
      "%ld right guesses, %ld cancelled\n",
      completions, tokens, total.preemptions, total.prefix_hits, total.draft_hits, total.finished[2]);
  EXPECT_GT(completions, 150 / every);
  EXPECT_GT(total.preemptions, 10 / every);
  EXPECT_GT(total.prefix_hits, 1000 / every);
  EXPECT_GT(total.draft_hits, 10 / every);
  EXPECT_GT(total.finished[2], 10 / every);
}

TEST(Invariance, RoundsAreAskedForInRange) {
  InvarianceOptions options;
  options.rounds = 0;
  EXPECT_THROW(check_invariance(test::GoldenModel("llama-tiny").folder(), options), Error);
}

}  // namespace
}  // namespace qwench
