#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "golden_model.h"
#include "qwench/engine.h"

namespace qwench {
namespace {

using namespace std::chrono_literals;
using test::GoldenModel;
using testing::HasSubstr;

Request streamed_request(std::vector<TokenId> ids, int max_tokens) {
  Request request;
  request.ids = std::move(ids);
  request.sampling.temperature = 0.0f;
  request.sampling.repetition_penalty = 1.0f;
  request.stop.max_tokens = max_tokens;
  request.stop.ignore_eos = true;
  return request;
}

std::unique_ptr<Engine> load_streaming(EngineOptions options = {}) {
  return Engine::load(GoldenModel("qwen3-tiny-f32").folder(), options);
}

std::vector<TokenId> rest_of(Stream& stream) {
  std::vector<TokenId> ids;
  for (const StreamDelta& delta : stream) ids.insert(ids.end(), delta.ids.begin(), delta.ids.end());
  return ids;
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::io;
}

TEST(Stream, PiecesJoinedAreTheResult) {
  const auto engine = load_streaming();
  Request request = streamed_request({46}, 12);
  request.logprobs = 3;
  const Result whole = std::move(engine->generate(std::span(&request, 1))[0]);
  Stream stream = engine->submit(request);
  EXPECT_GT(stream.id(), 0U);
  std::vector<TokenId> ids;
  std::vector<TokenLogprob> logprobs;
  std::optional<FinishReason> reason;
  for (const StreamDelta& delta : stream) {
    EXPECT_FALSE(reason) << "pieces after the last one";
    ids.insert(ids.end(), delta.ids.begin(), delta.ids.end());
    logprobs.insert(logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
    reason = delta.finish_reason;
  }
  EXPECT_EQ(reason, FinishReason::length);
  EXPECT_TRUE(stream.finished());
  const Result result = stream.result();
  EXPECT_EQ(result.ids, whole.ids);
  EXPECT_EQ(ids, result.ids);
  ASSERT_EQ(logprobs.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(logprobs[i].logprob, whole.logprobs[i].logprob);
    EXPECT_EQ(logprobs[i].top, whole.logprobs[i].top);
  }
  EXPECT_EQ(result.usage.completion_tokens, 12);
  EXPECT_GE(result.timings.first_token_seconds, result.timings.queue_seconds);
}

TEST(Stream, AnEventLoopIsToldOnceForWhatLiesReady) {
  const auto engine = load_streaming();
  std::mutex mutex;
  std::condition_variable woken;
  int notes = 0;
  Stream stream = engine->submit(streamed_request({46}, 30));
  stream.on_ready([&] {
    const std::lock_guard lock(mutex);
    ++notes;
    woken.notify_one();
  });
  std::vector<TokenId> ids;
  int taken = 0;
  while (!stream.finished()) {
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(woken.wait_for(lock, 10s, [&] { return notes > taken; }));
      ++taken;
      EXPECT_EQ(notes, taken) << "announced again before the reader had found nothing more";
    }
    while (const auto delta = stream.next(0ns)) ids.insert(ids.end(), delta->ids.begin(), delta->ids.end());
  }
  EXPECT_EQ(ids.size(), 30U);
}

TEST(Stream, AFunctionSetLateHearsOfWhatIsThere) {
  const auto engine = load_streaming();
  Stream stream = engine->submit(streamed_request({46}, 2));
  EXPECT_TRUE(engine->drain());
  int notes = 0;
  stream.on_ready([&] { ++notes; });
  EXPECT_EQ(notes, 1);
  EXPECT_EQ(rest_of(stream).size(), 2U);
}

TEST(Stream, ATimedWaitEndsWithoutAPiece) {
  const auto engine = load_streaming();
  Stream stream = engine->submit(streamed_request({46}, 1));
  EXPECT_TRUE(stream.next(10s).has_value());
  while (stream.next(1ms)) {
  }
  EXPECT_FALSE(stream.next(1ms).has_value());
  EXPECT_TRUE(stream.finished());
}

TEST(Stream, CancellingOneTouchesNoOther) {
  const auto engine = load_streaming();
  Request request = streamed_request({46}, 100);
  const Result alone = std::move(engine->generate(std::span(&request, 1))[0]);
  Stream kept = engine->submit(request);
  Stream stream = engine->submit(streamed_request({47}, 400));
  ASSERT_TRUE(stream.next().has_value());
  stream.cancel();
  EXPECT_EQ(stream.result().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(rest_of(kept), alone.ids);
  EXPECT_EQ(kept.result().finish_reason, FinishReason::length);
}

TEST(Stream, CancellingInTheQueueWhilePrefillingAndWhileDecodingReturnsEveryBlock) {
  EngineOptions options;
  options.max_batch = 1;
  options.max_batch_tokens = 4;
  const auto engine = load_streaming(options);
  Stream decoding = engine->submit(streamed_request({46}, 500));
  ASSERT_TRUE(decoding.next().has_value());
  Stream queued = engine->submit(streamed_request({47}, 5));
  queued.cancel();
  EXPECT_EQ(queued.result().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(engine->stats().running, 1) << "the one that runs goes on";
  Stream prefilling = engine->submit(streamed_request(std::vector<TokenId>(400, 5), 5));
  decoding.cancel();
  EXPECT_EQ(decoding.result().finish_reason, FinishReason::cancelled);
  prefilling.cancel();
  const Result result = prefilling.result();
  EXPECT_EQ(result.finish_reason, FinishReason::cancelled);
  EXPECT_TRUE(engine->drain(10s));
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::cancelled)], 3);
}

TEST(Stream, DroppingAStreamFreesItsPlace) {
  const auto engine = load_streaming();
  { const Stream dropped = engine->submit(streamed_request({46}, 500)); }
  EXPECT_TRUE(engine->drain(10s));
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
}

TEST(Stream, OutlivesItsEngine) {
  auto engine = load_streaming();
  Stream stream = engine->submit(streamed_request({46}, 500));
  engine.reset();
  rest_of(stream);
  EXPECT_EQ(stream.result().finish_reason, FinishReason::cancelled);
}

TEST(Stream, CompletionsOfOnePromptAreThoseOfTheirSeeds) {
  const auto engine = load_streaming();
  Request request = streamed_request({46, 5, 9, 12, 7}, 20);
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 7;
  request.logprobs = 1;
  std::vector<Result> alone;
  for (uint64_t seed = 7; seed < 12; ++seed) {
    Request one = request;
    one.sampling.seed = seed;
    one.cache_prompt = false;
    alone.push_back(std::move(engine->generate(std::span(&one, 1))[0]));
  }
  request.n = 5;
  Stream stream = engine->submit(request);
  std::vector<std::vector<TokenId>> pieces(5);
  for (const StreamDelta& delta : stream) {
    auto& ids = pieces[static_cast<size_t>(delta.index)];
    ids.insert(ids.end(), delta.ids.begin(), delta.ids.end());
  }
  std::set<std::vector<TokenId>> different;
  for (int i = 0; i < 5; ++i) {
    const Result result = stream.result(i);
    const Result& want = alone[static_cast<size_t>(i)];
    EXPECT_EQ(result.ids, want.ids) << i;
    EXPECT_EQ(pieces[static_cast<size_t>(i)], want.ids) << i;
    EXPECT_EQ(result.seed, static_cast<uint64_t>(7 + i));
    for (size_t t = 0; t < want.logprobs.size(); ++t)
      EXPECT_EQ(result.logprobs[t].logprob, want.logprobs[t].logprob) << i << ", " << t;
    different.insert(result.ids);
  }
  EXPECT_GT(different.size(), 2U);
  EXPECT_EQ(kind_of([&] { stream.result(5); }), ErrorKind::invalid_argument);
}

TEST(Stream, LogprobsOfThePromptEqualItsScore) {
  EngineOptions options;
  options.max_batch_tokens = 16;
  const auto engine = load_streaming(options);
  Request request =
      streamed_request({46, 5, 9, 12, 7, 88, 23, 4, 46, 5, 9, 12, 7, 88, 23, 4, 3, 9, 90, 14}, 0);
  request.prompt_logprobs = 2;
  const Score score = engine->score(request.ids);
  for (const int max_tokens : {0, 3}) {
    request.stop.max_tokens = max_tokens;
    const Result result = engine->submit(request).result();
    EXPECT_EQ(result.finish_reason, FinishReason::length);
    EXPECT_EQ(result.ids.size(), static_cast<size_t>(max_tokens));
    ASSERT_EQ(result.prompt_logprobs.size(), request.ids.size() - 1);
    for (size_t t = 0; t < score.logprobs.size(); ++t) {
      EXPECT_EQ(result.prompt_logprobs[t].id, request.ids[t + 1]);
      EXPECT_NEAR(result.prompt_logprobs[t].logprob, score.logprobs[t], 1e-5) << t;
      EXPECT_EQ(result.prompt_logprobs[t].top.size(), 2U);
    }
  }
}

TEST(Engine, WhatCannotRunIsRefusedAtOnce) {
  const auto engine = load_streaming();
  EXPECT_EQ(kind_of([&] { engine->submit(streamed_request({}, 5)); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { engine->submit(streamed_request({100000}, 5)); }), ErrorKind::invalid_argument);
  Request request = streamed_request({46}, 5);
  request.n = 0;
  EXPECT_EQ(kind_of([&] { engine->submit(request); }), ErrorKind::invalid_argument);
}

TEST(Engine, AFullQueueIsBusyAndHasRoomAgain) {
  EngineOptions options;
  options.max_batch = 1;
  options.max_queue = 2;
  const auto engine = load_streaming(options);
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(engine->submit(streamed_request({46}, 400)));
  EXPECT_EQ(kind_of([&] { engine->submit(streamed_request({46}, 400)); }), ErrorKind::busy);
  EXPECT_EQ(engine->stats().refused_requests, 1);
  Request request = streamed_request({46}, 2);
  EXPECT_EQ(engine->generate(std::span(&request, 1))[0].ids.size(), 2U) << "generate is not bounded by it";
  streams.clear();
  while (engine->stats().waiting + engine->stats().running > 0) std::this_thread::yield();
  EXPECT_EQ(engine->submit(request).result().ids.size(), 2U);
}

TEST(Engine, ADeadlineEndsARequestWithWhatItHas) {
  EngineOptions options;
  options.max_batch = 1;
  const auto engine = load_streaming(options);
  Stream endless = engine->submit(streamed_request({46}, 500));
  Request request = streamed_request({46}, 500);
  request.deadline = std::chrono::steady_clock::now() - 1s;
  const Result result = engine->submit(request).result();
  EXPECT_EQ(result.finish_reason, FinishReason::deadline);
  EXPECT_TRUE(result.ids.empty());
}

TEST(Engine, DrainingFinishesWhatRunsAndTakesNothingNew) {
  const auto engine = load_streaming();
  Stream stream = engine->submit(streamed_request({46}, 40));
  engine->drain(0ns);
  EXPECT_EQ(kind_of([&] { engine->submit(streamed_request({46}, 5)); }), ErrorKind::shutting_down);
  const std::vector<TokenId> ids = {46};
  EXPECT_EQ(kind_of([&] { engine->score(ids); }), ErrorKind::shutting_down);
  EXPECT_TRUE(engine->drain());
  EXPECT_EQ(stream.result().ids.size(), 40U);
  engine->stop();
  engine->stop();
}

TEST(Engine, StoppingEndsAllWithWhatTheyHave) {
  EngineOptions options;
  options.max_batch = 2;
  const auto engine = load_streaming(options);
  std::vector<Stream> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(engine->submit(streamed_request({46 + i}, 500)));
  engine->stop();
  for (Stream& stream : streams) EXPECT_EQ(stream.result().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
}

TEST(Engine, ManyThreadsGetWhatEachWouldGetAlone) {
  EngineOptions options;
  options.max_batch = 5;
  options.max_batch_tokens = 24;
  options.context = 128;
  const auto engine = load_streaming(options);
  std::vector<std::vector<TokenId>> want;
  for (int i = 0; i < 8; ++i) {
    Request request = streamed_request({46, 5, 9 + i % 3}, 10 + i);
    want.push_back(engine->generate(std::span(&request, 1))[0].ids);
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k) {
        const int i = (t * 3 + k) % 8;
        Stream stream = engine->submit(streamed_request({46, 5, 9 + i % 3}, 10 + i));
        if (k % 5 == 4) continue;
        ++(rest_of(stream) == want[static_cast<size_t>(i)] ? right : wrong);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(right, 64);
  EXPECT_TRUE(engine->drain(10s));
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
}

TEST(Engine, WhatTheCallersFunctionThrowsEndsTheCall) {
  const auto engine = load_streaming();
  const Request request = streamed_request({46}, 400);
  EXPECT_THROW(
      engine->generate(std::span(&request, 1), [](const Delta&) { throw std::runtime_error("enough"); }),
      std::runtime_error);
  EXPECT_EQ(engine->stats().finished[static_cast<size_t>(FinishReason::cancelled)], 1);
}

TEST(Engine, CountsWhatItDoes) {
  const auto engine = load_streaming();
  const Request request = streamed_request(std::vector<TokenId>(40, 9), 10);
  engine->submit(request).result();
  const Result again = engine->submit(request).result();
  EXPECT_EQ(again.usage.cached_tokens, 32);
  EXPECT_TRUE(engine->drain());
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.prompt_tokens, 80);
  EXPECT_EQ(stats.generation_tokens, 20);
  EXPECT_EQ(stats.prefix_queries, 80);
  EXPECT_EQ(stats.prefix_hits, 32);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::length)], 2);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.kv_blocks_cached, 3);
  EXPECT_GT(stats.passes, 18);
}

}  // namespace
}  // namespace qwench
