// What a device's failure does to an engine that runs on it: requests end with an error, the next ones are
// answered as before.
#include <gtest/gtest.h>

#include <cstdlib>

#include "golden_model.h"
#include "qwench/engine.h"
#include "vulkan_test_device.h"

namespace qwench {
namespace {

Request request_of(std::vector<TokenId> ids) {
  Request request;
  request.ids = std::move(ids);
  request.sampling.temperature = 0;
  request.stop.max_tokens = 6;
  request.stop.ignore_eos = true;
  return request;
}

class DeviceFailure : public testing::TestWithParam<std::string> {};

TEST_P(DeviceFailure, EndsRequestsWithAnErrorAndTheNextOnesAreAnswered) {
  QWENCH_NEEDS_VULKAN(device);
  const test::GoldenModel golden("qwen3-tiny-bf16-tied");
  EngineOptions options;
  options.device = "vulkan:" + std::to_string(device->index);
  options.context = 64;
  options.max_batch = 2;
  options.max_batch_tokens = 32;
  std::vector<TokenId> prompt(20);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i + 3);
  const Request request = request_of(prompt);
  std::vector<TokenId> want;
  {
    const auto engine = Engine::load(golden.folder(), options);
    want = engine->generate(std::span(&request, 1))[0].ids;
    ASSERT_EQ(want.size(), 6U);
  }
  setenv("QWENCH_VULKAN_FAIL", (GetParam() + ":2").c_str(), 1);
  const auto engine = Engine::load(golden.folder(), options);
  unsetenv("QWENCH_VULKAN_FAIL");
  const Result failed = engine->generate(std::span(&request, 1))[0];
  EXPECT_EQ(failed.finish_reason, FinishReason::error);
  EXPECT_FALSE(failed.error.empty());
  EXPECT_LT(failed.ids.size(), 6U);
  // The prompt's first block was cached before; after a loss it is computed again.
  for (int i = 0; i < 2; ++i) {
    const Result result = engine->generate(std::span(&request, 1))[0];
    EXPECT_EQ(result.finish_reason, FinishReason::length) << result.error;
    EXPECT_EQ(result.ids, want);
  }
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
}

INSTANTIATE_TEST_SUITE_P(Vulkan, DeviceFailure, testing::Values("lost", "memory"),
                         [](const auto& failure) { return failure.param; });

}  // namespace
}  // namespace qwench
