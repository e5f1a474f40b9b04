#include "qwench/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/thread_pool.h"
#include "golden_model.h"

namespace qwench {
namespace {

using test::GoldenModel;
using testing::HasSubstr;
using testing::Not;

std::vector<TokenId> ids_of(const Json& json) { return json.get<std::vector<TokenId>>(); }

SamplingOptions greedy() {
  SamplingOptions options;
  options.temperature = 0.0f;
  options.repetition_penalty = 1.0f;
  return options;
}

Request request_of(std::vector<TokenId> ids, int max_tokens) {
  Request request;
  request.ids = std::move(ids);
  request.sampling = greedy();
  request.stop.max_tokens = max_tokens;
  return request;
}

std::unique_ptr<Engine> load(const std::string& model, EngineOptions options = {}) {
  return Engine::load(GoldenModel(model).folder(), options);
}

// Cells of f32, as the official implementation computed.
std::unique_ptr<Engine> load_exact(const GoldenModel& golden) {
  EngineOptions options;
  options.kv_dtype = DType::f32;
  return Engine::load(golden.folder(), options);
}

class EngineGoldens : public testing::TestWithParam<std::string> {};

TEST_P(EngineGoldens, GreedyTextEqualsTheOfficialImplementationAloneAndInABatch) {
  const GoldenModel golden(GetParam());
  const auto engine = load_exact(golden);
  std::vector<Request> requests;
  for (const Json& prompt : golden.json()["prompts"]) {
    requests.push_back(request_of(ids_of(prompt["ids"]), 32));
    requests.back().stop.ignore_eos = true;
    requests.back().logprobs = 0;
  }
  const std::vector<Result> together = engine->generate(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Json& prompt = golden.json()["prompts"][i];
    EXPECT_EQ(together[i].ids, ids_of(prompt["greedy"])) << "prompt " << i;
    EXPECT_EQ(together[i].finish_reason, FinishReason::length);
    EXPECT_EQ(together[i].usage.completion_tokens, 32);
    EXPECT_EQ(together[i].text, std::nullopt) << "no tokenizer, no text";
    for (size_t t = 0; t < 32; ++t) {
      EXPECT_NEAR(together[i].logprobs[t].logprob, prompt["greedy_logprobs"][t].get<double>(), 2e-4)
          << i << ", " << t;
    }
    const Result alone = std::move(engine->generate(std::span(&requests[i], 1))[0]);
    EXPECT_EQ(alone.ids, together[i].ids);
    for (size_t t = 0; t < 32; ++t)
      EXPECT_EQ(alone.logprobs[t].logprob, together[i].logprobs[t].logprob) << i << ", " << t;
  }
}

TEST_P(EngineGoldens, EndsAtTheStopIdsThatConfigAndGenerationConfigName) {
  const GoldenModel golden(GetParam());
  const auto engine = load_exact(golden);
  std::vector<Request> requests;
  for (const Json& prompt : golden.json()["prompts"])
    requests.push_back(request_of(ids_of(prompt["ids"]), 32));
  const std::vector<Result> results = engine->generate(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Json& want = golden.json()["prompts"][i]["until_eos"];
    EXPECT_EQ(results[i].ids, ids_of(want["ids"])) << "prompt " << i;
    EXPECT_EQ(name(results[i].finish_reason), want["finish_reason"].get<std::string>()) << "prompt " << i;
  }
}

TEST_P(EngineGoldens, ScoresEqualTheOfficialImplementation) {
  const GoldenModel golden(GetParam());
  EngineOptions options;
  options.max_batch_tokens = 24;  // in chunks
  options.kv_dtype = DType::f32;
  const auto engine = Engine::load(golden.folder(), options);
  const Json& perplexity = golden.json()["perplexity"];
  const Score score = engine->score(ids_of(perplexity["ids"]));
  ASSERT_EQ(score.logprobs.size(), perplexity["nll"].size());
  for (size_t t = 0; t < score.logprobs.size(); ++t) {
    EXPECT_NEAR(-score.logprobs[t], perplexity["nll"][t].get<double>(), 3e-4) << t;
  }
  for (const Json& prompt : golden.json()["prompts"]) {
    const Score last = engine->score(ids_of(prompt["ids"]), 5);
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_EQ(last.top[k].first, prompt["top5_last"][k]["id"].get<TokenId>());
      EXPECT_NEAR(last.top[k].second, prompt["top5_last"][k]["logprob"].get<double>(), 2e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllDenseModels, EngineGoldens, testing::ValuesIn(test::dense_golden_models()),
                         [](const auto& variant) {
                           std::string name = variant.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Engine, FiftyRequestsThroughASmallCacheGiveWhatEachGivesAlone) {
  const GoldenModel golden("qwen3-tiny-bf16-tied");
  const auto engine = Engine::load(golden.folder());
  EngineOptions small;
  small.max_batch = 7;
  small.max_batch_tokens = 19;
  small.context = 160;
  small.threads = 3;
  const auto crowded = Engine::load(golden.folder(), small);
  std::vector<Request> requests;
  for (int i = 0; i < 50; ++i) {
    std::vector<TokenId> ids = ids_of(golden.json()["prompts"][static_cast<size_t>(i) % 5]["ids"]);
    ids.resize(std::min(ids.size(), static_cast<size_t>(3 + i)));
    requests.push_back(request_of(ids, 5 + i % 11));
    requests.back().stop.ignore_eos = true;
    if (i % 2 == 1) {
      requests.back().sampling.temperature = 0.9f;
      requests.back().sampling.seed = static_cast<uint64_t>(i);
      requests.back().sampling.presence_penalty = 0.5f;
    }
    requests.back().logprobs = 2;
  }
  const std::vector<Result> together = crowded->generate(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Result alone = std::move(engine->generate(std::span(&requests[i], 1))[0]);
    EXPECT_EQ(together[i].ids, alone.ids) << i;
    for (size_t t = 0; t < alone.logprobs.size(); ++t) {
      EXPECT_EQ(together[i].logprobs[t].logprob, alone.logprobs[t].logprob) << i << ", " << t;
      EXPECT_EQ(together[i].logprobs[t].top, alone.logprobs[t].top) << i << ", " << t;
    }
  }
}

TEST(Engine, KvCacheOfSmallerCellsStaysNear) {
  const GoldenModel golden("qwen3-tiny-f32");
  for (const DType dtype : {DType::f16, DType::bf16, DType::q8_0}) {
    EngineOptions options;
    options.kv_dtype = dtype;
    const Score score =
        Engine::load(golden.folder(), options)->score(ids_of(golden.json()["perplexity"]["ids"]));
    double nll = 0;
    for (const float logprob : score.logprobs) nll -= logprob;
    EXPECT_NEAR(nll / static_cast<double>(score.logprobs.size()),
                golden.json()["perplexity"]["mean_nll"].get<double>(), dtype == DType::f16 ? 0.01 : 0.08)
        << name(dtype);
  }
}

TEST(Engine, SameSeedSameTokens) {
  const auto engine = load("llama-tiny");
  Request request = request_of({5, 6, 7}, 20);
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 42;
  request.stop.ignore_eos = true;
  const auto first = engine->generate(std::span(&request, 1))[0].ids;
  EXPECT_EQ(engine->generate(std::span(&request, 1))[0].ids, first);
  request.sampling.seed = 43;
  EXPECT_NE(engine->generate(std::span(&request, 1))[0].ids, first);
}

TEST(Engine, MinTokensHoldsStopIdsBack) {
  const auto engine = load("qwen3-tiny-f32");
  Request request = request_of({46}, 32);
  const TokenId early = engine->generate(std::span(&request, 1))[0].ids[2];
  request.stop.stop_token_ids = {early};
  EXPECT_EQ(engine->generate(std::span(&request, 1))[0].ids.size(), 3U);
  request.stop.min_tokens = 6;
  const Result held = std::move(engine->generate(std::span(&request, 1))[0]);
  EXPECT_GE(held.ids.size(), 6U);
  for (size_t i = 0; i + 1 < 6; ++i) EXPECT_NE(held.ids[i], early);
}

TEST(Engine, ABadRequestDisturbsNoOther) {
  const auto engine = load("qwen3-tiny-f32");
  std::vector<Request> requests(6, request_of({46}, 4));
  requests[0].ids.clear();
  requests[1].ids = {100000};
  requests[2].ids.assign(10000, 5);
  requests[3].sampling.top_p = 3.0f;
  requests[4].logprobs = 50;
  const std::vector<Result> results = engine->generate(requests);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(results[i].finish_reason, FinishReason::error) << i;
  EXPECT_THAT(results[0].error, HasSubstr("empty"));
  EXPECT_THAT(results[1].error, HasSubstr("100000"));
  EXPECT_THAT(results[2].error, testing::AllOf(HasSubstr("10000"), HasSubstr("512")));
  EXPECT_THAT(results[3].error, HasSubstr("top_p"));
  EXPECT_THAT(results[4].error, HasSubstr("logprobs"));
  EXPECT_EQ(results[5].ids, (std::vector<TokenId>{99, 47, 178, 93}));
}

TEST(Engine, GenerationIsBoundedByTheContext) {
  EngineOptions options;
  options.context = 20;
  const auto engine = load("qwen3-tiny-f32", options);
  Request request = request_of({1, 2, 3, 4, 5}, -1);
  request.stop.ignore_eos = true;
  const Result result = std::move(engine->generate(std::span(&request, 1))[0]);
  EXPECT_EQ(result.ids.size(), 15U);
  EXPECT_EQ(result.finish_reason, FinishReason::length);
}

TEST(Engine, AStopRequestEndsAllWithWhatTheyHave) {
  const auto engine = load("qwen3-tiny-f32");
  std::vector<Request> requests(2, request_of({46}, 100));
  for (Request& request : requests) request.stop.ignore_eos = true;
  std::stop_source stop;
  int tokens = 0;
  const auto results = engine->generate(
      requests,
      [&](const Delta&) {
        if (++tokens == 6) stop.request_stop();
      },
      stop.get_token());
  for (const Result& result : results) {
    EXPECT_EQ(result.finish_reason, FinishReason::cancelled);
    EXPECT_EQ(result.ids.size(), 3U);
  }
}

TEST(Engine, MixtureOfExpertsIsRefusedWithASentence) {
  for (const char* model : {"qwen3moe-tiny", "qwen2moe-tiny"}) {
    try {
      load(model);
      FAIL() << model;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("ixture"));
    }
  }
}

TEST(Engine, OptionsOutOfRangeAreNamed) {
  const auto error_of = [](const EngineOptions& options) -> std::string {
    try {
      load("qwen3-tiny-f32", options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EngineOptions options;
  options.threads = -1;
  EXPECT_THAT(error_of(options), HasSubstr("threads"));
  options = {};
  options.context = 100000;
  EXPECT_THAT(error_of(options), testing::AllOf(HasSubstr("100000"), HasSubstr("512")));
  options = {};
  options.dtype = DType::q5_k;
  EXPECT_THAT(error_of(options), HasSubstr("q5_k"));
  options = {};
  options.kv_dtype = DType::q4_0;
  EXPECT_THAT(error_of(options), HasSubstr("q8_0"));
}

TEST(Engine, MoreThreadsThanCoresAreCut) {
  EngineOptions options;
  options.threads = 999;
  testing::internal::CaptureStderr();
  const auto engine = load("qwen3-tiny-f32", options);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("999"));
  EXPECT_EQ(engine->info().threads, std::max(8, available_cores()));
}

TEST(Engine, APromptThatIsTooLongNamesALongerContextOnlyWhereThereIsOne) {
  const auto error_of = [](int context, size_t length) -> std::string {
    EngineOptions options;
    options.context = context;
    const auto engine = load("qwen3-tiny-f32", options);
    EXPECT_EQ(engine->info().max_context, 512);
    try {
      engine->check(request_of(std::vector<TokenId>(length, 1), 1));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(64, 64), testing::AllOf(HasSubstr("64 tokens"), HasSubstr("-c"), HasSubstr("512")));
  EXPECT_THAT(error_of(0, 600),
              testing::AllOf(HasSubstr("600 tokens"), HasSubstr("the model's limit"), Not(HasSubstr("-c"))));
  EXPECT_EQ(error_of(64, 63), "");
}

}  // namespace
}  // namespace qwench
