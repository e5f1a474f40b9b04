#include "engine/model_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "golden_model.h"

namespace qwench {
namespace {

constexpr uint64_t kMegabyte = 1'000'000;

ModelPlan plan(uint64_t megabytes, const EngineOptions& options = {}) {
  return plan_model(*Checkpoint::open(test::GoldenModel("qwen3-tiny-f32").folder()), options,
                    megabytes * kMegabyte);
}

TEST(ModelPlan, WithMemoryEnoughTheBatchIsAsLargeAsIsOfUse) {
  const ModelPlan roomy = plan(8000);
  EXPECT_EQ(roomy.max_batch, 64);
  EXPECT_EQ(roomy.max_batch_tokens, 512);
  EXPECT_EQ(roomy.context, 512);
  EXPECT_EQ(roomy.memory.blocks, 64 * 512 / kBlockSize);
}

TEST(ModelPlan, WithLittleMemoryFewerRunAtOnceAndTheCacheTakesAPart) {
  const ModelPlan tight = plan(100);
  EXPECT_LT(tight.max_batch, 64);
  EXPECT_GE(tight.max_batch, 1);
  EXPECT_LE(tight.max_batch_tokens, 512);
  EXPECT_GE(tight.max_batch_tokens, 64);
  EXPECT_EQ(tight.context, 512) << "one sequence of full length has room";
  EXPECT_LT(tight.memory.weights + tight.memory.activations + tight.memory.kv_cache(), 100 * kMegabyte);
}

TEST(ModelPlan, WhatIsAskedForIsKept) {
  EngineOptions options;
  options.max_batch = 3;
  options.max_batch_tokens = 40;
  options.cache_tokens = 1000;
  const ModelPlan asked = plan(8000, options);
  EXPECT_EQ(asked.max_batch, 3);
  EXPECT_EQ(asked.max_batch_tokens, 40);
  EXPECT_EQ(asked.memory.blocks, 63);
}

TEST(ModelPlan, ACacheThatHoldsNoSequenceIsRefused) {
  EngineOptions options;
  options.context = 512;
  options.cache_tokens = 500;
  try {
    plan(8000, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("500"), testing::HasSubstr("512")));
  }
}

TEST(ModelPlan, AContextThatNobodyAskedForFollowsTheCache) {
  EngineOptions options;
  options.cache_tokens = 256;
  const ModelPlan small = plan(8000, options);
  EXPECT_EQ(small.context, 256);
  EXPECT_EQ(small.memory.blocks, 16);
}

TEST(ModelPlan, ACacheBeyondTheMemoryIsRefused) {
  EngineOptions options;
  options.cache_tokens = 1 << 29;
  try {
    plan(100, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("536870912"));
  }
}

}  // namespace
}  // namespace qwench
