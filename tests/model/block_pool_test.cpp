#include "model/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace qwench {
namespace {

TEST(BlockPool, HandsOutEachBlockOnceAndTakesItBack) {
  BlockPool pool(5);
  std::set<int32_t> blocks;
  while (pool.available() > 0) blocks.insert(pool.allocate());
  EXPECT_EQ(blocks, (std::set<int32_t>{0, 1, 2, 3, 4}));
  pool.release(3);
  EXPECT_EQ(pool.available(), 1);
  EXPECT_EQ(pool.allocate(), 3);
}

TEST(BlockPool, ASharedBlockIsFreeWhenItsLastReferenceGoes) {
  BlockPool pool(1);
  const int32_t block = pool.allocate();
  pool.add_reference(block);
  EXPECT_EQ(pool.references(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.available(), 0);
  pool.release(block);
  EXPECT_EQ(pool.available(), 1);
}

}  // namespace
}  // namespace qwench
