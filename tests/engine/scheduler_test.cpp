#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "backend/backend.h"

namespace qwench {
namespace {

Sequence sequence_of(int prompt) {
  Sequence sequence;
  sequence.ids.assign(static_cast<size_t>(prompt), 1);
  sequence.prompt_length = prompt;
  return sequence;
}

// Runs one pass: every sequence whose tokens are all computed gets its next one.
int step(Scheduler& scheduler) {
  const auto rows = scheduler.schedule();
  std::vector<Sequence*> drawing;
  int count = 0;
  for (const ScheduledRows& part : rows) {
    count += part.rows;
    if (part.draws) drawing.push_back(part.sequence);
  }
  scheduler.commit(rows);
  for (Sequence* sequence : drawing) sequence->ids.push_back(2);
  return count;
}

TEST(Scheduler, APromptIsCutIntoChunksOfTheBudget) {
  BlockPool pool(100);
  Scheduler scheduler(pool, 4, 32);
  Sequence sequence = sequence_of(70);
  scheduler.add(sequence);
  EXPECT_EQ(step(scheduler), 32);
  EXPECT_EQ(step(scheduler), 32);
  EXPECT_EQ(sequence.length(), 70);
  EXPECT_EQ(step(scheduler), 6);
  EXPECT_EQ(sequence.length(), 71);
  EXPECT_EQ(step(scheduler), 1);
}

TEST(Scheduler, DecodingGoesBeforePrefillAndBothShareAPass) {
  BlockPool pool(100);
  Scheduler scheduler(pool, 4, 32);
  Sequence first = sequence_of(10);
  Sequence second = sequence_of(100);
  scheduler.add(first);
  step(scheduler);
  scheduler.add(second);
  const auto rows = scheduler.schedule();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].sequence, &first);
  EXPECT_EQ(rows[0].rows, 1);
  EXPECT_EQ(rows[1].sequence, &second);
  EXPECT_EQ(rows[1].rows, 31);
  EXPECT_FALSE(rows[1].draws);
}

TEST(Scheduler, ALongPromptHoldsThoseThatDecodeUpForAShortTimeOnly) {
  BlockPool pool(200);
  Scheduler scheduler(pool, 4, 512);
  Sequence first = sequence_of(10);
  Sequence second = sequence_of(1000);
  scheduler.add(second);
  EXPECT_EQ(step(scheduler), 512) << "nobody waits";
  scheduler.add(first);
  EXPECT_EQ(step(scheduler), 488 + 10);
  Sequence third = sequence_of(1000);
  scheduler.add(third);
  EXPECT_EQ(step(scheduler), 2 + 128);
}

TEST(Scheduler, MoreThanTheBatchWaits) {
  BlockPool pool(100);
  Scheduler scheduler(pool, 2, 64);
  std::vector<Sequence> sequences(3, sequence_of(5));
  for (Sequence& sequence : sequences) scheduler.add(sequence);
  EXPECT_EQ(scheduler.schedule().size(), 2U);
  scheduler.remove(sequences[0]);
  EXPECT_EQ(scheduler.schedule().size(), 2U);
}

TEST(Scheduler, TheLatestIsPreemptedWhenBlocksRunOutAndComesBack) {
  BlockPool pool(4);
  Scheduler scheduler(pool, 2, 64);
  Sequence first = sequence_of(20);
  Sequence second = sequence_of(20);
  scheduler.add(first);
  scheduler.add(second);
  while (scheduler.counts().preemptions == 0) step(scheduler);
  EXPECT_EQ(first.length(), 34) << "both needed a third block for position 33";
  EXPECT_EQ(second.computed, 0);
  EXPECT_EQ(second.block_table.size(), 0U);
  const int drawn = second.length();
  EXPECT_EQ(drawn, 33);
  scheduler.remove(first);
  step(scheduler);
  EXPECT_EQ(second.length(), drawn + 1);
}

TEST(Scheduler, EverySequenceEndsAndEveryBlockComesBackUnderRandomLoads) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
    };
    const int longest = 100;
    BlockPool pool(pick((longest + kBlockSize - 1) / kBlockSize, 20));
    Scheduler scheduler(pool, pick(1, 8), pick(1, 40));
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<int> goals;
    for (int i = 0; i < 12; ++i) {
      sequences.push_back(std::make_unique<Sequence>(sequence_of(pick(1, 60))));
      sequences.back()->index = i;
      goals.push_back(std::min(longest, sequences.back()->length() + pick(1, 40)));
      scheduler.add(*sequences.back());
    }
    int passes = 0;
    while (!scheduler.empty()) {
      ASSERT_GT(step(scheduler), 0) << "seed " << seed;
      ASSERT_LT(++passes, 20000) << "seed " << seed;
      int held = 0;
      for (auto& sequence : sequences) {
        held += static_cast<int>(sequence->block_table.size());
        ASSERT_GE(static_cast<int>(sequence->block_table.size()) * kBlockSize, sequence->computed);
        if (sequence->length() >= goals[static_cast<size_t>(sequence->index)] && sequence->pending() <= 1)
          scheduler.remove(*sequence);
      }
      ASSERT_LE(held, pool.size());
    }
    EXPECT_EQ(pool.available(), pool.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace qwench
