#include "verify/speed.h"

#include <chrono>

namespace qwench {
namespace {

template <typename F>
double seconds_of(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

DecodeSpeed measure_speed(Subject& subject, std::span<const TokenId> prompt, int new_tokens) {
  subject.greedy(prompt, 1);
  DecodeSpeed speed;
  speed.prefill_seconds = seconds_of([&] { subject.greedy(prompt, 1); });
  std::vector<TokenId> continuation;
  speed.with_cache_seconds = seconds_of([&] { continuation = subject.greedy(prompt, new_tokens); });
  std::vector<TokenId> ids(prompt.begin(), prompt.end());
  speed.without_cache_seconds = seconds_of([&] {
    for (const TokenId id : continuation) {
      subject.greedy(ids, 1);
      ids.push_back(id);
    }
  });
  return speed;
}

}  // namespace qwench
