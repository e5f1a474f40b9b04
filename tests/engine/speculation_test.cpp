// Guessing changes no token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden_model.h"
#include "qwench/engine.h"

namespace qwench {
namespace {

using test::GoldenModel;

std::unique_ptr<Engine> load_guessing(int draft_tokens, int context = 0) {
  EngineOptions options;
  options.context = context;
  options.speculation.draft_tokens = draft_tokens;
  return Engine::load(GoldenModel("qwen3-tiny-f32").folder(), options);
}

std::vector<Request> requests() {
  std::vector<Request> list;
  for (int i = 0; i < 24; ++i) {
    Request request;
    for (int k = 0; k < 40; ++k) request.ids.push_back(30 + (k * (1 + i % 3)) % (5 + i));
    request.sampling.temperature = i % 3 == 0 ? 0.0F : 0.3F * static_cast<float>(i % 3);
    request.sampling.seed = static_cast<uint64_t>(i);
    request.sampling.repetition_penalty = i % 4 == 3 ? 1.1F : 1.0F;
    request.sampling.frequency_penalty = i % 5 == 4 ? 0.2F : 0.0F;
    request.stop.max_tokens = 1 + i * 3;
    request.stop.ignore_eos = i % 2 == 0;
    request.stop.min_tokens = i % 6 == 5 ? 10 : 0;
    request.stop.max_tokens = std::max(request.stop.max_tokens, request.stop.min_tokens);
    // Of few tokens, so that guesses are right now and then.
    if (i % 4 < 2) request.sampling.logit_bias = {{7, 20.0F}, {8, 20.0F}, {9, 19.0F}};
    request.logprobs = i % 4;
    if (i % 4 == 0) request.logprobs.reset();
    list.push_back(std::move(request));
  }
  return list;
}

TEST(Speculation, AnswersAreTheSameBitForBit) {
  const auto plain = load_guessing(0)->generate(requests());
  for (const int draft_tokens : {1, 4, 16}) {
    const auto engine = load_guessing(draft_tokens);
    const auto guessed = engine->generate(requests());
    ASSERT_EQ(guessed.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(guessed[i].ids, plain[i].ids) << i;
      EXPECT_EQ(guessed[i].finish_reason, plain[i].finish_reason) << i;
      ASSERT_EQ(guessed[i].logprobs.size(), plain[i].logprobs.size());
      for (size_t t = 0; t < plain[i].logprobs.size(); ++t) {
        EXPECT_EQ(guessed[i].logprobs[t].logprob, plain[i].logprobs[t].logprob) << i << ", " << t;
        EXPECT_EQ(guessed[i].logprobs[t].top, plain[i].logprobs[t].top) << i << ", " << t;
      }
    }
    EXPECT_GT(engine->stats().draft_hits, 50);
    EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  }
}

TEST(Speculation, RepetitionTakesFewerPasses) {
  Request request;
  request.ids = {46};
  request.sampling.temperature = 0.0F;
  request.sampling.repetition_penalty = 1.0F;
  // So high that the answer repeats one token.
  request.sampling.logit_bias = {{7, 100.0F}};
  request.stop.max_tokens = 100;
  request.stop.ignore_eos = true;
  const auto passes_of = [&](int draft_tokens) {
    const auto engine = load_guessing(draft_tokens);
    EXPECT_EQ(engine->generate(std::span(&request, 1))[0].ids, std::vector<TokenId>(100, 7));
    return engine->stats().passes;
  };
  EXPECT_EQ(passes_of(0), 100);
  EXPECT_LT(passes_of(8), 20);
}

TEST(Speculation, TheContextIsNotOverrun) {
  Request request;
  request.ids = std::vector<TokenId>(20, 7);
  request.sampling.temperature = 0.0F;
  request.sampling.logit_bias = {{7, 100.0F}};
  request.stop.ignore_eos = true;
  const auto result = load_guessing(16, 48)->generate(std::span(&request, 1));
  EXPECT_EQ(result[0].ids.size(), 28U);
  EXPECT_EQ(result[0].finish_reason, FinishReason::length);
}

}  // namespace
}  // namespace qwench
