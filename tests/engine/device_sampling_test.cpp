// What a device's engine draws from the largest logits alone, beside what it draws from whole rows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_loop.h"
#include "engine/generate_call.h"
#include "engine/loaded_model.h"
#include "golden_model.h"
#include "vulkan_test_device.h"

namespace qwench {
namespace {

EngineOptions options_of(const std::string& device) {
  EngineOptions options;
  options.device = device;
  options.context = 128;
  options.max_batch = 8;
  options.max_batch_tokens = 64;
  return options;
}

/// A model whose counts of its device can be seen.
class Watched {
 public:
  explicit Watched(const EngineOptions& options)
      : options_(options), model_(test::GoldenModel("qwen3-tiny-f32").folder(), options) {}

  std::vector<Result> generate(std::span<const Request> requests) {
    before_ = model_.backend().counts();
    EngineLoop loop(model_, options_);
    const std::function<void(const Delta&)> nothing;
    const auto call = std::make_shared<GenerateCall>(requests, nothing);
    std::vector<std::unique_ptr<Job>> jobs;
    for (size_t i = 0; i < requests.size(); ++i)
      jobs.push_back(std::make_unique<Job>(requests[i], call->sink(i), model_.generation(), i));
    loop.submit(std::move(jobs), false);
    std::vector<Result> results = call->wait();
    loop.stop();
    return results;
  }
  /// Of the last call.
  int64_t read_back_bytes() { return model_.backend().counts().read_back_bytes - before_.read_back_bytes; }
  int64_t read_backs() { return model_.backend().counts().read_backs - before_.read_backs; }
  int vocabulary() const { return model_.info().vocab_size; }

 private:
  EngineOptions options_;
  LoadedModel model_;
  DeviceCounts before_;
};

Request sampled(uint64_t seed) {
  Request request;
  for (int i = 0; i < 12; ++i)
    request.ids.push_back(static_cast<TokenId>(20 + (seed * 7 + static_cast<uint64_t>(i)) % 50));
  request.sampling.temperature = 0.8F;
  request.sampling.top_k = 20;
  request.sampling.top_p = 0.9F;
  request.sampling.repetition_penalty = 1.0F;
  request.sampling.seed = seed;
  request.stop.max_tokens = 20;
  request.stop.ignore_eos = true;
  return request;
}

std::vector<Request> of_all_kinds() {
  std::vector<Request> list;
  for (uint64_t seed = 0; seed < 18; ++seed) {
    Request request = sampled(seed);
    if (seed % 3 == 1) request.sampling.temperature = 0.0F;
    if (seed % 4 == 1) request.sampling.repetition_penalty = 1.3F;
    if (seed % 5 == 2) request.sampling.frequency_penalty = 0.5F;
    if (seed % 5 == 3) request.sampling.presence_penalty = -0.5F;
    if (seed % 6 == 2) request.stop.min_tokens = 8, request.stop.ignore_eos = false;
    if (seed % 7 == 3) request.sampling.top_k = 0;
    if (seed % 7 == 4) request.sampling.top_k = 1;
    if (seed % 7 == 5) request.sampling.top_k = 100;
    if (seed % 8 == 6) request.sampling.min_p = 0.1F, request.sampling.top_p = 1.0F;
    if (seed % 9 == 2) request.sampling.logit_bias = {{7, -3.0F}, {30, -100.0F}};
    if (seed % 9 == 4) request.sampling.logit_bias = {{7, 3.0F}};
    if (seed % 10 == 7) request.n = 3;
    list.push_back(std::move(request));
  }
  return list;
}

TEST(DeviceSampling, DrawsTheSameTokensFromTheLargestLogitsAsFromWholeRows) {
  QWENCH_NEEDS_VULKAN(device);
  Watched watched(options_of("vulkan:" + std::to_string(device->index)));
  std::vector<Request> requests = of_all_kinds();
  const std::vector<Result> from_top = watched.generate(requests);
  for (Request& request : requests) request.logprobs = 0;  // of the whole row
  const std::vector<Result> from_rows = watched.generate(requests);
  ASSERT_EQ(from_top.size(), from_rows.size());
  for (size_t i = 0; i < from_top.size(); ++i) {
    EXPECT_TRUE(from_top[i].error.empty()) << from_top[i].error;
    EXPECT_EQ(from_top[i].ids, from_rows[i].ids) << "request " << i;
  }
}

TEST(DeviceSampling, AStepReadsBackTheLargestLogitsAlone) {
  QWENCH_NEEDS_VULKAN(device);
  Watched watched(options_of("vulkan:" + std::to_string(device->index)));
  const Request request = sampled(3);
  const Result result = watched.generate(std::span(&request, 1))[0];
  ASSERT_EQ(result.ids.size(), 20U) << result.error;
  EXPECT_EQ(watched.read_backs(), 20);
  EXPECT_EQ(watched.read_back_bytes(), 20 * 32 * 8);  // 20 + 1, in steps of powers of two
  EXPECT_LT(32 * 8, watched.vocabulary() * 4);
}

TEST(DeviceSampling, TheCpuReadsRows) {
  Watched watched(options_of("cpu"));
  const Request request = sampled(3);
  EXPECT_EQ(watched.generate(std::span(&request, 1))[0].ids.size(), 20U);
  EXPECT_EQ(watched.read_backs(), 0);
}

}  // namespace
}  // namespace qwench
