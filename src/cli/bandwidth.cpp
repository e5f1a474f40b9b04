#include "cli/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/thread_pool.h"

namespace qwench::cli {
namespace {

// Well beyond the last-level caches of today's desktops and most servers.
constexpr int64_t kWords = (int64_t{512} << 20) / 8;
constexpr int kPasses = 6;

uint64_t sum(const uint64_t* words, int64_t count) {
  // Independent sums, so that the loads and not the additions are what is timed.
  constexpr int kLanes = 32;
  uint64_t lanes[kLanes] = {};
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t lane : lanes) total += lane;
  return total;
}

}  // namespace

double read_bandwidth(int threads) {
  ThreadPool pool(threads);
  std::vector<uint64_t> words(static_cast<size_t>(kWords), 1);
  std::atomic<uint64_t> total{0};
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    pool.parallel_for(kWords, 4096, [&](int64_t first, int64_t last, int) {
      total += sum(words.data() + first, last - first);
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(kWords) * 8 / seconds);
  }
  // The sum is used, so that no pass may be left out.
  return total == 0 ? 0 : best;
}

}  // namespace qwench::cli
