#include "engine/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <fstream>

#include "golden_model.h"
#include "qwench/engine.h"

namespace qwench {
namespace {

using test::GoldenModel;
using testing::ElementsAre;
using testing::HasSubstr;

Request request_of(std::vector<TokenId> ids, Pooling pooling) {
  Request request;
  request.ids = std::move(ids);
  request.embedding = pooling;
  return request;
}

EngineOptions exact() {
  EngineOptions options;
  options.kv_dtype = DType::f32;
  return options;
}

std::vector<TokenId> prompt_of(int length, int first = 1) {
  std::vector<TokenId> ids;
  for (int i = 0; i < length; ++i) ids.push_back((first + i * 7) % 190);
  return ids;
}

/// What the definition says of the reference's hidden states [positions, size].
std::vector<double> pooled(const std::vector<float>& states, size_t size, Pooling pooling) {
  const size_t positions = states.size() / size;
  std::vector<double> vector(size);
  const size_t first = pooling == Pooling::mean ? 0 : positions - 1;
  for (size_t row = first; row < positions; ++row) {
    for (size_t i = 0; i < size; ++i)
      vector[i] += double{states[row * size + i]} / static_cast<double>(positions - first);
  }
  return vector;
}

TEST(Embedding, IsTheReferencesHiddenStatesPooled) {
  int vectors = 0;
  for (const std::string& model : test::dense_golden_models()) {
    const GoldenModel golden(model);
    EngineOptions options = exact();
    options.max_batch_tokens = 40;  // prompts come in pieces
    const auto engine = Engine::load(golden.folder(), options);
    const auto size = static_cast<size_t>(engine->info().embedding_size);
    for (const int index : {1, 4}) {
      const std::string name = "p" + std::to_string(index) + ".hidden.norm";
      if (!golden.has(name)) continue;
      const auto ids =
          golden.json()["prompts"][static_cast<size_t>(index)]["ids"].get<std::vector<TokenId>>();
      for (const Pooling pooling : {Pooling::mean, Pooling::last}) {
        const Result result = engine->submit(request_of(ids, pooling)).result();
        const std::vector<double> want = pooled(golden.tensor(name), size, pooling);
        ASSERT_EQ(result.embedding.size(), size) << model;
        EXPECT_EQ(result.finish_reason, FinishReason::stop);
        EXPECT_EQ(result.usage.prompt_tokens, static_cast<int>(ids.size()));
        EXPECT_TRUE(result.ids.empty());
        for (size_t i = 0; i < size; ++i)
          EXPECT_NEAR(result.embedding[i], want[i], 2e-4)
              << model << ", " << qwench::name(pooling) << ", " << i;
        ++vectors;
      }
    }
  }
  std::printf("embedding goldens: %d of 40 vectors\n", vectors);
  EXPECT_EQ(vectors, 40);
}

TEST(Embedding, BitsDoNotDependOnTheBatchThePiecesOrTheCache) {
  const GoldenModel golden("qwen3-tiny-f32");
  EngineOptions small;
  small.max_batch_tokens = 7;
  const auto whole = Engine::load(golden.folder());
  const auto pieces = Engine::load(golden.folder(), small);
  for (const Pooling pooling : {Pooling::mean, Pooling::last}) {
    for (const int length : {1, 15, 16, 17, 60}) {
      const Request request = request_of(prompt_of(length), pooling);
      const std::vector<float> alone = whole->submit(request).result().embedding;
      EXPECT_EQ(whole->submit(request).result().embedding, alone) << length << " again, from the cache";
      EXPECT_EQ(pieces->submit(request).result().embedding, alone) << length << " in pieces";
      std::vector<Request> batch{request_of(prompt_of(23, 5), Pooling::mean), request,
                                 request_of(prompt_of(9), Pooling::last)};
      Request text;
      text.ids = prompt_of(30, 3);
      text.stop.max_tokens = 12;
      text.stop.ignore_eos = true;
      batch.push_back(text);
      for (Engine* engine : {whole.get(), pieces.get()}) {
        const std::vector<Result> results = engine->generate(batch);
        EXPECT_EQ(results[1].embedding, alone) << length << " beside others";
        EXPECT_EQ(results[3].ids.size(), 12U);
      }
    }
  }
}

TEST(Embedding, LastTokenPoolingUsesTheCacheAndMeanPoolingCannot) {
  const auto engine = Engine::load(GoldenModel("qwen3-tiny-f32").folder());
  const auto cached = [&](Pooling pooling) {
    return engine->submit(request_of(prompt_of(60), pooling)).result().usage.cached_tokens;
  };
  EXPECT_EQ(cached(Pooling::mean), 0);
  EXPECT_EQ(cached(Pooling::mean), 0);
  EXPECT_EQ(cached(Pooling::last), 48);
}

TEST(Embedding, MeanPoolingSurvivesPreemption) {
  const GoldenModel golden("qwen3-tiny-f32");
  EngineOptions tight;
  tight.context = 160;
  tight.cache_tokens = 160;
  tight.max_batch = 4;
  tight.max_batch_tokens = 16;
  const auto engine = Engine::load(golden.folder(), tight);
  const auto roomy = Engine::load(golden.folder());
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) {
    Request text;
    text.ids = prompt_of(20, 3 + i);
    text.stop.max_tokens = 100;
    text.stop.ignore_eos = true;
    requests.push_back(text);
    requests.push_back(request_of(prompt_of(100, 11 + i), Pooling::mean));
  }
  const std::vector<Result> results = engine->generate(requests);
  for (size_t i = 1; i < requests.size(); i += 2)
    EXPECT_EQ(results[i].embedding, roomy->submit(requests[i]).result().embedding);
}

TEST(Embedding, APromptMayFillTheContext) {
  EngineOptions options;
  options.context = 64;
  const auto engine = Engine::load(GoldenModel("qwen3-tiny-f32").folder(), options);
  EXPECT_EQ(engine->submit(request_of(prompt_of(64), Pooling::mean)).result().embedding.size(), 64U);
  EXPECT_THROW(engine->check(request_of(prompt_of(65), Pooling::mean)), Error);
  Request two = request_of(prompt_of(4), Pooling::mean);
  two.n = 2;
  EXPECT_THROW(engine->check(two), Error);
}

TEST(UnitVector, IsCutThenNormalized) {
  const std::vector<float> vector{3, 4, 12};
  EXPECT_THAT(unit_vector(vector), ElementsAre(3.0F / 13, 4.0F / 13, 12.0F / 13));
  EXPECT_THAT(unit_vector(vector, 2), ElementsAre(0.6F, 0.8F));
  EXPECT_THAT(unit_vector(std::vector<float>{0, 0, 1}, 2), ElementsAre(0, 0));
}

TEST(Pooling, IsWhatTheModelsFilesAskFor) {
  const struct {
    const char* config;
    std::optional<Pooling> pooling;
  } cases[] = {
      {R"({"pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false})", Pooling::mean},
      {R"({"pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true})", Pooling::last},
      {R"({"pooling_mode": "lasttoken"})", Pooling::last},
      {R"({"pooling_mode_cls_token": true})", std::nullopt},
      {R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})", std::nullopt},
  };
  char pattern[] = "/tmp/qwench-pooling-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern);
  for (const auto& entry : std::filesystem::directory_iterator(GoldenModel("qwen3-tiny-f32").folder()))
    std::filesystem::copy(entry.path(), folder);
  EXPECT_EQ(Engine::load(folder)->info().pooling, Pooling::mean) << "where nothing is said";
  std::filesystem::create_directory(folder / "1_Pooling");
  for (const auto& one : cases) {
    std::ofstream(folder / "1_Pooling" / "config.json") << one.config;
    EXPECT_EQ(Engine::load(folder)->info().pooling, one.pooling) << one.config;
  }
  std::ofstream(folder / "1_Pooling" / "config.json") << R"({"pooling_mode_mean_tokens": "yes"})";
  EXPECT_THROW(Engine::load(folder), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace qwench
