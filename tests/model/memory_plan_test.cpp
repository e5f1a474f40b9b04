#include "model/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qwench/error.h"

namespace qwench {
namespace {

// Qwen3-0.6B.
ModelConfig config() {
  ModelConfig c;
  c.hidden_size = 1024;
  c.intermediate_size = 3072;
  c.num_layers = 28;
  c.num_heads = 16;
  c.num_kv_heads = 8;
  c.head_dim = 128;
  c.vocab_size = 151936;
  c.max_position = 40960;
  return c;
}

MemoryRequest request(uint64_t available) {
  return {.weights = 1'200'000'000,
          .kv_dtype = DType::f16,
          .context = 0,
          .max_batch = 4,
          .max_batch_tokens = 512,
          .max_logit_rows = 64,
          .available = available};
}

TEST(MemoryPlan, CountsKeysAndValuesPerToken) {
  const MemoryPlan plan = plan_memory(config(), request(uint64_t{64} << 30));
  EXPECT_EQ(plan.kv_per_token, 2U * 28 * 8 * 128 * 2);
  EXPECT_EQ(plan.context, 40960);
  EXPECT_EQ(plan.blocks, 4 * 40960 / 16);
  EXPECT_EQ(plan.kv_cache(), plan.kv_per_token * 4 * 40960);
}

TEST(MemoryPlan, TheModelsOwnContextIsCutToWhatFits) {
  const MemoryPlan plan = plan_memory(config(), request(uint64_t{3} << 30));
  EXPECT_LT(plan.context, 40960);
  EXPECT_GT(plan.context, 8000);
  EXPECT_EQ(plan.blocks, plan.context / 16);
}

TEST(MemoryPlan, AContextThatWasAskedForIsNotCut) {
  MemoryRequest asked = request(uint64_t{3} << 30);
  asked.context = 40000;
  try {
    plan_memory(config(), asked);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("context of 40000"));
    EXPECT_THAT(error.what(), testing::HasSubstr("-c"));
  }
}

TEST(MemoryPlan, NothingFitsWhereTheWeightsDoNot) {
  EXPECT_THROW(plan_memory(config(), request(1'000'000'000)), Error);
}

TEST(MemoryPlan, AContextBeyondTheModelsLimitIsRefusedWithBothNumbers) {
  MemoryRequest asked = request(uint64_t{64} << 30);
  asked.context = 50000;
  try {
    plan_memory(config(), asked);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("50000"), testing::HasSubstr("40960")));
  }
}

}  // namespace
}  // namespace qwench
