#include "kernels/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "core/memory.h"
#include "kernels/vnni_targets.h"
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

// acc += the products of the bytes of a and b, in 32 bits. The empty assembly keeps the compiler from taking
// what does not change out of the loop.
#if HWY_TARGET == HWY_AVX3_DL
#define QWENCH_BYTES_DOT 64
using Bytes = __m512i;
HWY_INLINE Bytes SetBytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
HWY_INLINE Bytes Dot(Bytes acc, Bytes a, Bytes b) {
  // Highway's attributes for this target, which needs VNNI, leave the name of the extension out.
  asm volatile("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
  return acc;
}
HWY_INLINE int Lane(Bytes v) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(v)); }
HWY_INLINE Bytes Sum(Bytes a, Bytes b) { return _mm512_add_epi32(a, b); }
#elif HWY_TARGET == HWY_AVX3
#define QWENCH_BYTES_DOT 64
using Bytes = __m512i;
HWY_INLINE Bytes SetBytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
HWY_INLINE Bytes Dot(Bytes acc, Bytes a, Bytes b) {
  asm volatile("" : "+v"(a));
  const Bytes pairs = _mm512_maddubs_epi16(a, b);
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
HWY_INLINE int Lane(Bytes v) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(v)); }
HWY_INLINE Bytes Sum(Bytes a, Bytes b) { return _mm512_add_epi32(a, b); }
#elif HWY_TARGET == HWY_AVX2
#define QWENCH_BYTES_DOT 32
using Bytes = __m256i;
HWY_INLINE Bytes SetBytes(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
HWY_INLINE Bytes Dot(Bytes acc, Bytes a, Bytes b) {
  asm volatile("" : "+x"(a));
  const Bytes pairs = _mm256_maddubs_epi16(a, b);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
HWY_INLINE int Lane(Bytes v) { return _mm_cvtsi128_si32(_mm256_castsi256_si128(v)); }
HWY_INLINE Bytes Sum(Bytes a, Bytes b) { return _mm256_add_epi32(a, b); }
#elif HWY_TARGET == HWY_SSE4
#define QWENCH_BYTES_DOT 16
using Bytes = __m128i;
HWY_INLINE Bytes SetBytes(int value) { return _mm_set1_epi8(static_cast<char>(value)); }
HWY_INLINE Bytes Dot(Bytes acc, Bytes a, Bytes b) {
  asm volatile("" : "+x"(a));
  return _mm_add_epi32(acc, _mm_madd_epi16(_mm_maddubs_epi16(a, b), _mm_set1_epi16(1)));
}
HWY_INLINE int Lane(Bytes v) { return _mm_cvtsi128_si32(v); }
HWY_INLINE Bytes Sum(Bytes a, Bytes b) { return _mm_add_epi32(a, b); }
#elif HWY_TARGET == HWY_NEON
#define QWENCH_BYTES_DOT 8
using Bytes = int32x4_t;
HWY_INLINE Bytes SetBytes(int value) { return vreinterpretq_s32_s8(vdupq_n_s8(static_cast<int8_t>(value))); }
HWY_INLINE Bytes Dot(Bytes acc, Bytes a, Bytes b) {
  asm volatile("" : "+w"(a));
  return vpadalq_s16(acc,
                     vmull_s8(vget_low_s8(vreinterpretq_s8_s32(a)), vget_low_s8(vreinterpretq_s8_s32(b))));
}
HWY_INLINE int Lane(Bytes v) { return vgetq_lane_s32(v, 0); }
HWY_INLINE Bytes Sum(Bytes a, Bytes b) { return vaddq_s32(a, b); }
#endif

// As MultiplyAdd; 0 where there is no instruction for it.
double ByteDots(int64_t rounds, int* result) {
#ifdef QWENCH_BYTES_DOT
  constexpr int kChains = 10;
  constexpr double kProducts = QWENCH_BYTES_DOT;
#undef QWENCH_BYTES_DOT
  Bytes acc[kChains];
  Unroll<kChains>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = SetBytes(0); });
  const Bytes a = SetBytes(3);
  const Bytes b = SetBytes(5);
  for (int64_t r = 0; r < rounds; ++r) {
    Unroll<kChains>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = Dot(acc[i], a, b); });
  }
  Bytes all = acc[0];
  for (int i = 1; i < kChains; ++i) all = Sum(all, acc[i]);
  *result = Lane(all);
  return 2.0 * kChains * kProducts * static_cast<double>(rounds);
#else
  (void)rounds;
  (void)result;
  return 0;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(ReadAll);
HWY_EXPORT(MultiplyAdd);
HWY_EXPORT(ByteDots);
namespace {

constexpr int kTries = 8;
// So much that what the last pass left in the caches (32 MB and more) does not count.
constexpr uint64_t kBytes = uint64_t{1} << 30;
constexpr uint64_t kLeastBytes = uint64_t{64} << 20;
constexpr int64_t kGrain = int64_t{1} << 16;
constexpr int64_t kRounds = int64_t{1} << 21;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of several tries at f(), which returns operations of one worker.
template <typename F>
double best_rate(ThreadPool& pool, F&& f) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    std::atomic<double> operations{0};
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](int, int workers) { operations = f() * workers; });
    best = std::max(best, 1e-9 * operations / seconds_since(start));
  }
  return best;
}

double read_rate(ThreadPool& pool) {
  uint64_t bytes = kBytes;
  while (bytes > kLeastBytes && bytes > available_memory() / 4) bytes /= 2;
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  const auto memory = hwy::AllocateAligned<float>(static_cast<size_t>(count));
  if (!memory) {
    throw Error(ErrorKind::out_of_memory, "measuring the memory bandwidth takes " +
                                              std::to_string(bytes >> 20) + " MB, which are not available");
  }
  std::atomic<float> sink{0};  // keeps the results alive
  pool.parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int) {
    std::fill(memory.get() + begin, memory.get() + end, 1.0F);
  });
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int) {
      sink = HWY_DYNAMIC_DISPATCH(ReadAll)(memory.get() + begin, end - begin);
    });
    best = std::max(best, 1e-9 * static_cast<double>(bytes) / seconds_since(start));
  }
  return best;
}

}  // namespace

MachineLimits measure_machine(ThreadPool& pool) {
  std::atomic<float> float_sink{0};
  std::atomic<int> int_sink{0};
  MachineLimits best;
  best.read_gb_per_s = read_rate(pool);
  best.f32_gflop_per_s = best_rate(pool, [&] {
    float result = 0;
    const double done = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(kRounds, 0.999F, &result);
    float_sink = result;
    return done;
  });
  best.int8_gop_per_s = best_rate(pool, [&] {
    int result = 0;
    const double done = HWY_DYNAMIC_DISPATCH(ByteDots)(kRounds, &result);
    int_sink = result;
    return done;
  });
  return best;
}

}  // namespace qwench
#endif
