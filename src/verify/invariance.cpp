#include "verify/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>
#include <thread>

#include "backend/backend.h"
#include "core/thread_pool.h"

namespace qwench {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  int pick(int low, int high) {
    return low + static_cast<int>(generator_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return pick(1, n) == 1; }

 private:
  std::mt19937_64 generator_;
};

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

bool same(const TokenLogprob& a, const TokenLogprob& b) {
  return a.id == b.id && same(a.logprob, b.logprob) &&
         std::equal(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(), [](const auto& x, const auto& y) {
           return x.first == y.first && same(x.second, y.second);
         });
}

bool same(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TokenLogprob& x, const TokenLogprob& y) { return same(x, y); });
}

/// Empty where they are the same.
std::string difference(const Result& got, const Result& want) {
  if (got.finish_reason == FinishReason::error) return got.error;
  const auto [g, w] = std::mismatch(got.ids.begin(), got.ids.end(), want.ids.begin(), want.ids.end());
  if (g != got.ids.end() || w != want.ids.end()) {
    const auto shown = [](auto at, const std::vector<TokenId>& ids) {
      return at == ids.end() ? std::string("the end") : fmt::format("token {}", *at);
    };
    return fmt::format("at {} of the answer stands {}, alone {}", g - got.ids.begin(), shown(g, got.ids),
                       shown(w, want.ids));
  }
  for (size_t i = 0; i < want.logprobs.size(); ++i) {
    if (i >= got.logprobs.size() || !same(got.logprobs[i], want.logprobs[i]))
      return fmt::format("the log-probabilities of token {} of the answer differ", i);
  }
  if (!same(got.prompt_logprobs, want.prompt_logprobs)) return "the prompt's log-probabilities differ";
  if (got.finish_reason != want.finish_reason) return "it ends for another reason";
  return "";
}

class Invariance {
 public:
  Invariance(const std::filesystem::path& model, const InvarianceOptions& options)
      : model_(model), options_(options), random_(options.seed) {}

  InvarianceReport run() {
    answer_alone();
    InvarianceReport report;
    for (int round = 0; round < options_.rounds; ++round) {
      tell(fmt::format("round {} of {}", round + 1, options_.rounds));
      report.rounds.push_back(this->round());
    }
    return report;
  }

 private:
  void tell(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  EngineOptions engine_options() const {
    EngineOptions options;
    options.dtype = options_.dtype;
    options.packed_bf16 = options_.packed_bf16;
    options.kv_dtype = options_.kv_dtype;
    options.threads = options_.threads;
    options.device = options_.device;
    options.gpu_layers = options_.gpu_layers;
    options.device_memory = options_.device_memory;
    return options;
  }

  void answer_alone() {
    const auto engine = Engine::load(model_, engine_options());
    const ModelInfo& info = engine->info();
    vocab_ = info.vocab_size;
    longest_ = std::min(info.max_context, options_.longest_prompt + options_.most_tokens + 1);
    make_requests();
    for (size_t i = 0; i < requests_.size(); ++i) {
      tell(fmt::format("request {} of {} alone", i + 1, requests_.size()));
      std::vector<Result> results;
      for (int k = 0; k < requests_[i].n; ++k) {
        Request request = requests_[i];
        request.n = 1;
        request.cache_prompt = false;
        *request.sampling.seed += static_cast<uint64_t>(k);
        std::vector<Result> one = engine->generate(std::span(&request, 1));
        if (one[0].finish_reason == FinishReason::error)
          throw Error(ErrorKind::invalid_argument,
                      fmt::format("a request cannot run alone: {}", one[0].error));
        results.push_back(std::move(one[0]));
      }
      alone_.push_back(std::move(results));
    }
  }

  void make_requests() {
    const int room = longest_ - options_.most_tokens - 1;
    const std::vector<TokenId> common = ids(room);
    for (int i = 0; i < options_.requests; ++i) {
      Request request;
      if (random_.one_in(2)) request.ids.assign(common.begin(), common.begin() + random_.pick(1, room));
      const int own = random_.pick(request.ids.empty() ? 1 : 0, room - static_cast<int>(request.ids.size()));
      const std::vector<TokenId> rest = ids(random_.one_in(2) ? std::min(own, 9) : own);
      request.ids.insert(request.ids.end(), rest.begin(), rest.end());
      if (request.ids.empty()) request.ids = ids(1);
      if (i > 0 && random_.one_in(6)) request.ids = requests_.back().ids;  // the same prompt again
      request.sampling.temperature = random_.one_in(2) ? 0.0F : 0.9F;
      request.sampling.seed = static_cast<uint64_t>(random_.pick(0, 1 << 30));
      request.sampling.repetition_penalty = random_.one_in(3) ? 1.2F : 1.0F;
      request.stop.max_tokens = random_.pick(1, options_.most_tokens);
      request.stop.ignore_eos = true;
      request.logprobs = random_.pick(0, 3);
      request.skip_special_tokens = false;
      if (random_.one_in(8)) request.prompt_logprobs = 1;
      if (random_.one_in(6)) request.n = random_.pick(2, 4);
      request.cache_prompt = !random_.one_in(8);
      requests_.push_back(std::move(request));
    }
  }

  std::vector<TokenId> ids(int count) {
    std::vector<TokenId> list(static_cast<size_t>(count));
    for (TokenId& id : list) id = random_.pick(0, vocab_ - 1);
    return list;
  }

  EngineOptions round_options() {
    EngineOptions options = engine_options();
    const int most = options_.threads > 0 ? options_.threads : std::max(2, available_cores());
    options.threads = random_.pick(1, most);
    options.max_batch = random_.one_in(4) ? 64 : random_.pick(1, 24);
    options.max_batch_tokens = random_.one_in(4) ? 256 : random_.pick(1, 60);
    options.context = longest_;
    // Now and then hardly more room than one sequence needs.
    const int sequences = random_.one_in(2) ? random_.pick(1, 3) : random_.pick(4, 24);
    options.cache_tokens = int64_t{(longest_ + kBlockSize - 1) / kBlockSize * kBlockSize} * sequences;
    if (random_.one_in(2)) options.speculation = {random_.pick(1, 8), 1, 3};
    return options;
  }

  InvarianceRound round() {
    const EngineOptions options = round_options();
    const auto engine = Engine::load(model_, options);
    InvarianceRound round;
    round.threads = engine->info().threads;
    round.max_batch = options.max_batch;
    round.max_batch_tokens = options.max_batch_tokens;
    round.draft_tokens = options.speculation.draft_tokens;
    round.requests =
        random_.one_in(6) ? random_.pick(1, 3) : random_.pick(1, static_cast<int>(requests_.size()));

    std::vector<std::pair<size_t, Stream>> streams;
    std::vector<Stream> neighbours;
    for (int i = 0; i < round.requests; ++i) {
      const auto which = static_cast<size_t>(random_.pick(0, static_cast<int>(requests_.size()) - 1));
      streams.emplace_back(which, engine->submit(requests_[which]));
      if (random_.one_in(6)) {
        neighbours.push_back(engine->submit(requests_[which]));
        ++round.cancelled;
      }
      if (random_.one_in(3)) await_passes(*engine, random_.pick(1, 6));
      if (!neighbours.empty() && random_.one_in(2)) neighbours.pop_back();
    }
    neighbours.clear();
    for (auto& [which, stream] : streams) compare(which, stream, round);
    engine->drain();
    round.stats = engine->stats();
    if (round.stats.kv_blocks_used != 0 && round.first_difference.empty()) {
      ++round.different;
      round.first_difference =
          fmt::format("{} blocks of the cache were not given back", round.stats.kv_blocks_used);
    }
    return round;
  }

  static void await_passes(const Engine& engine, int count) {
    const int64_t until = engine.stats().passes + count;
    while (true) {
      const EngineStats stats = engine.stats();
      if (stats.passes >= until || stats.running + stats.waiting == 0) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  void compare(size_t which, Stream& stream, InvarianceRound& round) const {
    for (int k = 0; k < stream.completions(); ++k) {
      const Result got = stream.result(k);
      const Result& want = alone_[which][static_cast<size_t>(k)];
      ++round.completions;
      round.tokens += static_cast<int>(want.ids.size());
      const std::string what = difference(got, want);
      if (what.empty()) continue;
      ++round.different;
      if (round.first_difference.empty())
        round.first_difference = fmt::format("request {}, completion {}: {}", which, k, what);
    }
  }

  const std::filesystem::path model_;
  const InvarianceOptions& options_;
  Random random_;
  int vocab_ = 0;
  int longest_ = 0;  // positions of a request
  std::vector<Request> requests_;
  std::vector<std::vector<Result>> alone_;  // [requests][completions]
};

void check_range(const char* name, int value, int low, int high) {
  if (value < low || value > high)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} is {}, but must be from {} to {}", name, value, low, high));
}

}  // namespace

bool InvarianceReport::ok() const {
  return !rounds.empty() &&
         std::all_of(rounds.begin(), rounds.end(), [](const auto& round) { return round.different == 0; });
}

std::string InvarianceReport::verdict() const {
  int completions = 0;
  int different = 0;
  int64_t tokens = 0;
  std::string first;
  for (const InvarianceRound& round : rounds) {
    completions += round.completions;
    different += round.different;
    tokens += round.tokens;
    if (first.empty()) first = round.first_difference;
  }
  if (ok())
    return fmt::format(
        "{} completions in {} rounds, {} tokens with their log-probabilities: each bit for bit as alone",
        completions, rounds.size(), tokens);
  return fmt::format("{} of {} completions are not what they are alone; the first: {}", different,
                     completions, first);
}

InvarianceReport check_invariance(const std::filesystem::path& model, const InvarianceOptions& options) {
  check_range("rounds", options.rounds, 1, 100000);
  check_range("requests", options.requests, 1, 1024);
  check_range("longest_prompt", options.longest_prompt, 1, 1 << 20);
  check_range("most_tokens", options.most_tokens, 1, 1 << 16);
  return Invariance(model, options).run();
}

}  // namespace qwench
