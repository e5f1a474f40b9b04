// What is found in the cache is what would be computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "golden_model.h"
#include "qwench/engine.h"

namespace qwench {
namespace {

using test::GoldenModel;

std::vector<TokenId> prompt(int length, int first = 1) {
  std::vector<TokenId> ids;
  for (int i = 0; i < length; ++i) ids.push_back((first + i * 7) % 190);
  return ids;
}

Request prefix_request(std::vector<TokenId> ids, int max_tokens = 6) {
  Request request;
  request.ids = std::move(ids);
  request.sampling.temperature = 0.0F;
  request.sampling.repetition_penalty = 1.0F;
  request.stop.max_tokens = max_tokens;
  request.stop.ignore_eos = true;
  request.logprobs = 2;
  return request;
}

std::unique_ptr<Engine> load_sharing(const std::string& model, EngineOptions options = {}) {
  return Engine::load(GoldenModel(model).folder(), options);
}

Result computed_anew(Engine& engine, Request request) {
  request.cache_prompt = false;
  Result result = engine.submit(std::move(request)).result();
  EXPECT_EQ(result.usage.cached_tokens, 0);
  return result;
}

void expect_same(const Result& got, const Result& want, const std::string& what) {
  EXPECT_EQ(got.ids, want.ids) << what;
  ASSERT_EQ(got.logprobs.size(), want.logprobs.size()) << what;
  for (size_t t = 0; t < want.logprobs.size(); ++t) {
    EXPECT_EQ(got.logprobs[t].logprob, want.logprobs[t].logprob) << what << ", token " << t;
    EXPECT_EQ(got.logprobs[t].top, want.logprobs[t].top) << what << ", token " << t;
  }
}

TEST(PrefixReuse, AFullHitComputesTheLastBlockAgain) {
  const std::vector<std::pair<int, int>> cached = {{1, 0},   {15, 0},  {16, 0},  {17, 16},
                                                   {32, 16}, {33, 32}, {48, 32}, {100, 96}};
  for (const char* model : {"qwen3-tiny-f32", "qwen2-tiny-window", "qwen2-tiny-yarn", "llama-tiny-rope3"}) {
    const auto engine = load_sharing(model);
    int first = 0;
    for (const auto& [length, hit] : cached) {
      const Request request = prefix_request(prompt(length, ++first));
      const Result want = computed_anew(*engine, request);
      EXPECT_EQ(engine->submit(request).result().usage.cached_tokens, 0);
      const Result again = engine->submit(request).result();
      EXPECT_EQ(again.usage.cached_tokens, hit) << length;
      EXPECT_EQ(again.usage.prompt_tokens, length);
      expect_same(again, want, std::string(model) + ", " + std::to_string(length));
    }
  }
}

TEST(PrefixReuse, TheSamePromptTwiceAtOnce) {
  for (const int chunk : {8, 16, 50, 512}) {
    EngineOptions options;
    options.max_batch_tokens = chunk;
    const auto engine = load_sharing("qwen3-tiny-bf16-tied", options);
    const Request request = prefix_request(prompt(80), 40);
    const Result want = computed_anew(*engine, request);
    std::vector<Stream> streams;
    for (int i = 0; i < 5; ++i) streams.push_back(engine->submit(request));
    for (Stream& stream : streams) expect_same(stream.result(), want, "chunk " + std::to_string(chunk));
    engine->drain();
    EXPECT_EQ(engine->stats().kv_blocks_used, 0);
    EXPECT_EQ(engine->stats().kv_blocks_cached, 7) << "119 positions, each block kept once";
  }
}

TEST(PrefixReuse, AConversationKeepsItsHistory) {
  const auto engine = load_sharing("qwen3-tiny-f32");
  std::vector<TokenId> ids = prompt(20);
  int expected = 0;
  for (int turn = 0; turn < 5; ++turn) {
    const Request request = prefix_request(ids, 21);
    const Result result = engine->submit(request).result();
    EXPECT_EQ(result.usage.cached_tokens, expected) << "turn " << turn;
    expect_same(result, computed_anew(*engine, request), "turn " + std::to_string(turn));
    ids.insert(ids.end(), result.ids.begin(), result.ids.end());
    // The last token of an answer is not computed.
    expected = static_cast<int>((ids.size() - 1) / 16 * 16);
    const std::vector<TokenId> question = prompt(9, turn);
    ids.insert(ids.end(), question.begin(), question.end());
  }
}

TEST(PrefixReuse, OthersWithoutCachingAreNotFoundAndFindNothing) {
  const auto engine = load_sharing("qwen3-tiny-f32");
  computed_anew(*engine, prefix_request(prompt(64)));
  EXPECT_EQ(engine->submit(prefix_request(prompt(64))).result().usage.cached_tokens, 0);
  computed_anew(*engine, prefix_request(prompt(64)));
  EXPECT_EQ(engine->stats().prefix_hits, 0);
}

TEST(PrefixReuse, WhatIsPreemptedFindsItsOwnBeginningAgain) {
  EngineOptions options;
  options.context = 128;
  options.cache_tokens = 192;
  options.max_batch = 3;
  const auto engine = load_sharing("qwen3-tiny-f32", options);
  std::vector<Result> want;
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(prefix_request(prompt(40, 3 * i + 1), 60));
    want.push_back(computed_anew(*engine, requests.back()));
  }
  const std::vector<Result> together = engine->generate(requests);
  for (size_t i = 0; i < 3; ++i) expect_same(together[i], want[i], std::to_string(i));
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(stats.prefix_hits, 0) << "none of the prompts begin alike";
  EXPECT_EQ(together[0].usage.cached_tokens, 0) << "counted when it first ran";
  EXPECT_EQ(stats.kv_blocks_used, 0);
}

TEST(PrefixReuse, TheLeastRecentlyUsedLeavesWhenBlocksRunOut) {
  EngineOptions options;
  options.context = 64;
  options.max_batch = 2;  // 8 blocks
  const auto engine = load_sharing("qwen3-tiny-f32", options);
  const auto cached = [&](int first) {
    return engine->submit(prefix_request(prompt(48, first), 1)).result().usage.cached_tokens;
  };
  EXPECT_EQ(cached(1), 0);
  EXPECT_EQ(cached(50), 0);
  EXPECT_EQ(cached(1), 32);
  EXPECT_EQ(cached(100), 0) << "takes the place of the second";
  EXPECT_EQ(cached(1), 32);
  EXPECT_LT(cached(50), 32);
}

TEST(PrefixReuse, KeysThatDependOnThePromptsLengthAreNotShared) {
  // Dynamic RoPE scaling rotates a prompt longer than the original limit by its length.
  const std::filesystem::path source = GoldenModel("qwen3-tiny-f32").folder();
  std::string pattern = (std::filesystem::temp_directory_path() / "qwench-dynamic-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path folder = pattern;
  Json config = parse_json(read_text_file(source / "config.json"), "config.json");
  config["max_position_embeddings"] = 64;
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 4.0}};
  std::ofstream(folder / "config.json") << config.dump();
  std::filesystem::copy_file(source / "model.safetensors", folder / "model.safetensors");
  {
    const auto engine = Engine::load(folder);
    ASSERT_EQ(engine->info().context, 256);
    const auto run = [&](int length) {
      const Request request = prefix_request(prompt(length));
      const Result result = engine->submit(request).result();
      expect_same(result, computed_anew(*engine, request), std::to_string(length));
      return result.usage.cached_tokens;
    };
    EXPECT_EQ(run(60), 0);
    EXPECT_EQ(run(50), 48) << "short ones share";
    EXPECT_EQ(run(100), 0);
    EXPECT_EQ(run(120), 0);
    EXPECT_EQ(run(100), 96) << "of the same length";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace qwench
