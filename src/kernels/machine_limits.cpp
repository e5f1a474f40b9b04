#include "kernels/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "kernels/targets.h"
#include "qwench/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/machine_limits.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/aligned_allocator.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
//
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Sums n floats, a multiple of 4 x 16, as four streams: one alone does not keep enough lines under way.
float ReadAll(const float* x, int64_t n) {
  const DF d;
  constexpr int64_t kLine = 16;
  const int64_t quarter = n / 4;
  VF sums[4];
  for (VF& sum : sums) sum = hn::Zero(d);
  for (int64_t i = 0; i < quarter; i += kLine) {
    Unroll<4>([&](auto s) HWY_ATTR __attribute__((always_inline)) {
      const float* line = x + s * quarter + i;
      hwy::Prefetch(line + 64 * kLine);
      Unroll<static_cast<int>(kLine / kStep)>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        sums[s] = hn::Add(sums[s], hn::LoadU(d, line + v * kStep));
      });
    });
  }
  return SumLanes(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
}

// Returns the operations done.
double MultiplyAdd(int64_t rounds, float seed, float* result) {
  const DF d;
  constexpr int kChains = 12;
  VF acc[kChains];
  Unroll<kChains>([&](auto i) HWY_ATTR
                  __attribute__((always_inline)) { acc[i] = hn::Set(d, seed * static_cast<float>(int{i})); });
  const VF factor = hn::Set(d, seed);
  const VF term = hn::Set(d, 1.0F - seed);
  for (int64_t r = 0; r < rounds; ++r) {
    Unroll<kChains>([&](auto i) HWY_ATTR
                    __attribute__((always_inline)) { acc[i] = hn::MulAdd(acc[i], factor, term); });
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
  const auto memory = hwy::AllocateAligned<float>(static_cast<size_t>(kFloats));
  if (!memory) {
    throw Error(ErrorKind::out_of_memory,
                "measuring the memory bandwidth takes 256 MB, which are not available");
  }
  std::fill_n(memory.get(), kFloats, 1.0F);
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(kFloats, kGrain, [&](int64_t begin, int64_t end, int) {
      sink = HWY_DYNAMIC_DISPATCH(ReadAll)(memory.get() + begin, end - begin);
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
