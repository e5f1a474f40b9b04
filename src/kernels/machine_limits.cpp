#include "kernels/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <vector>

#include "kernels/targets.h"
#include "qwench/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/machine_limits.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Sums n floats; n is a multiple of 8 vectors.
float ReadAll(const float* x, int64_t n) {
  const DF d;
  VF sums[8];
  for (VF& sum : sums) sum = hn::Zero(d);
  for (int64_t i = 0; i < n; i += 8 * kStep) {
    for (int64_t s = 0; s < 8; ++s) sums[s] = hn::Add(sums[s], hn::LoadU(d, x + i + s * kStep));
  }
  VF all = sums[0];
  for (int s = 1; s < 8; ++s) all = hn::Add(all, sums[s]);
  return SumLanes(all);
}

// Returns the operations done.
double MultiplyAdd(int64_t rounds, float seed, float* result) {
  const DF d;
  constexpr int kChains = 12;
  VF acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = hn::Set(d, seed * static_cast<float>(i));
  const VF factor = hn::Set(d, seed);
  const VF term = hn::Set(d, 1.0F - seed);
  for (int64_t r = 0; r < rounds; ++r) {
    for (VF& a : acc) a = hn::MulAdd(a, factor, term);
  }
  VF all = acc[0];
  for (int i = 1; i < kChains; ++i) all = hn::Add(all, acc[i]);
  *result = SumLanes(all);
  return 2.0 * kChains * static_cast<double>(kLanes) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(ReadAll);
HWY_EXPORT(MultiplyAdd);
namespace {

constexpr int kTries = 8;
constexpr int64_t kFloats = int64_t{64} << 20;  // 256 MB
constexpr int64_t kGrain = int64_t{1} << 16;
constexpr int64_t kRounds = int64_t{1} << 21;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

MachineLimits measure_machine(ThreadPool& pool) {
  MachineLimits best;
  std::atomic<float> sink{0};  // keeps the results alive
  std::vector<float> memory;
  try {
    memory.resize(static_cast<size_t>(kFloats), 1.0F);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::out_of_memory,
                "measuring the memory bandwidth takes 256 MB, which are not available");
  }
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(kFloats, kGrain, [&](int64_t begin, int64_t end, int) {
      sink = HWY_DYNAMIC_DISPATCH(ReadAll)(memory.data() + begin, end - begin);
    });
    best.read_gb_per_s =
        std::max(best.read_gb_per_s, 4e-9 * static_cast<double>(kFloats) / seconds_since(start));
  }
  for (int i = 0; i < kTries; ++i) {
    std::atomic<double> operations{0};
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](int, int workers) {
      float result = 0;
      const double done = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(kRounds, 0.999F, &result);
      sink = result;
      operations = done * workers;
    });
    best.f32_gflop_per_s = std::max(best.f32_gflop_per_s, 1e-9 * operations / seconds_since(start));
  }
  return best;
}

}  // namespace qwench
#endif
