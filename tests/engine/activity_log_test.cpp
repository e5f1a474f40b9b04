#include "engine/activity_log.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace qwench {
namespace {

TEST(ActivityLog, DrawsEachBlockAsItIs) {
  BlockPool pool(4);
  ActivityLog log(4);
  EXPECT_EQ(log.activity().blocks, "....");
  const int32_t a = pool.allocate();
  const int32_t b = pool.allocate();
  const int32_t c = pool.allocate();
  pool.add_reference(a);
  pool.keep(b);
  pool.release(b);
  EXPECT_FALSE(log.wanted());
  log.ask();
  EXPECT_TRUE(log.wanted());
  log.draw(pool);
  EXPECT_FALSE(log.wanted());
  log.show();
  std::string expected = "....";
  expected[static_cast<size_t>(a)] = 's';
  expected[static_cast<size_t>(b)] = 'c';
  expected[static_cast<size_t>(c)] = 'u';
  EXPECT_EQ(log.activity().blocks, expected);
  EXPECT_EQ(log.activity().shared_blocks, 1);
  EXPECT_EQ(log.activity().blocks_per_cell, 1);
}

TEST(ActivityLog, ManyBlocksShareACell) {
  BlockPool pool(3 * kBlockCells + 1);
  ActivityLog log(pool.size());
  EXPECT_EQ(log.activity().blocks_per_cell, 4);
  EXPECT_LE(log.activity().blocks.size(), static_cast<size_t>(kBlockCells));
  pool.allocate();
  log.draw(pool);
  log.show();
  const std::string blocks = log.activity().blocks;
  EXPECT_EQ(std::count(blocks.begin(), blocks.end(), 'u'), 1);
}

TEST(ActivityLog, KeepsTheLastPasses) {
  ActivityLog log(1);
  for (int64_t i = 1; i <= kRecordedPasses + 5; ++i) log.add({i, 1, 0, 1, 0.0});
  const EngineActivity activity = log.activity();
  ASSERT_EQ(activity.passes.size(), static_cast<size_t>(kRecordedPasses));
  EXPECT_EQ(activity.passes.front().number, 6);
}

TEST(ActivityLog, PromptsAndAnswersAreCountedApart) {
  Sequence prompt;
  prompt.ids.assign(10, 1);
  Sequence answer;
  answer.ids.assign(10, 1);
  answer.computed = 9;
  const ScheduledRows parts[] = {{&prompt, 10, true}, {&answer, 1, true}};
  const PassRecord record = ActivityLog::describe(parts, 7);
  EXPECT_EQ(record.number, 7);
  EXPECT_EQ(record.sequences, 2);
  EXPECT_EQ(record.prefill_rows, 10);
  EXPECT_EQ(record.decode_rows, 1);
}

}  // namespace
}  // namespace qwench
