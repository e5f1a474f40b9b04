// The micro-kernel of linear and attention: dot products of a few rows of x with a few rows of w, once per
// instruction set.

#include <array>
#include <atomic>
#include <utility>

#include "hwy/cache_control.h"
#include "kernels/simd-inl.h"

#if defined(QWENCH_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_TILE_INL_H_
#undef QWENCH_KERNELS_TILE_INL_H_
#else
#define QWENCH_KERNELS_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// A tile's accumulators must cover the latency of a fused multiply-add (4 cycles, 2 a cycle: at least 8) and
// leave registers for one row of x and the rows of w: 12 + 1 + 3 of 16, or 24 + 1 + 4 of 32.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 6;
constexpr int kTileCols = 4;
#else
constexpr int kTileRows = 4;
constexpr int kTileCols = 3;
#endif
constexpr int kMostSums = kTileRows * 4;

// Where a tile's rows of w lie, most likely: from memory they are fetched ahead; from the L2 cache the
// processor does that better by itself.
enum class WeightsFrom { memory, cache };

// sums[i * NR + j] = sum over k < n of x[i, k] w[j, k]: one vector of partial sums for each, lane l adding
// the elements k = l (mod kLanes) in ascending order, then SumLanes4. x is readable and zero up to a multiple
// of kLanes; w need not be. sums has room for a multiple of 4.
template <int MR, int NR, class Element, WeightsFrom kFrom>
void Tile(const float* x, int64_t x_stride, const uint8_t* w, int64_t w_stride, int64_t n, float* sums) {
  constexpr int kCount = MR * NR;
  constexpr int kGroups = (kCount + 3) / 4;
  VF acc[kGroups * 4];
  Unroll<kGroups * 4>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = hn::Zero(DF()); });
  const float* x_rows[MR];
  for (int i = 0; i < MR; ++i) x_rows[i] = x + i * x_stride;
  const uint8_t* w_rows[NR];
  for (int j = 0; j < NR; ++j) w_rows[j] = w + j * w_stride;
  const auto step = [&](int64_t k, const VF* wv) HWY_ATTR __attribute__((always_inline)) {
    Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      const VF xv = hn::LoadU(DF(), x_rows[i] + k);
      // Keeps the compiler from loading x and w again for each use: loads, 2 a cycle, would be the
      // bottleneck.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      Unroll<NR>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
        acc[i * NR + j] = hn::MulAdd(xv, wv[j], acc[i * NR + j]);
      });
    });
  };
  const auto full_step = [&](int64_t k) HWY_ATTR __attribute__((always_inline)) {
    VF wv[NR];
    Unroll<NR>([&](auto j) HWY_ATTR
               __attribute__((always_inline)) { wv[j] = Element::Load(w_rows[j] + k * Element::kBytes); });
    step(k, wv);
  };
  int64_t k = 0;
  if constexpr (kFrom == WeightsFrom::memory) {
    // A cache line of each row of w at a time, while those of the next tile are fetched.
    constexpr int64_t kLine = 64 / Element::kBytes;
    const int64_t next_tile = NR * w_stride;
    for (; k + kLine <= n; k += kLine) {
      Unroll<NR>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
        hwy::Prefetch(w_rows[j] + k * Element::kBytes + next_tile);
      });
      Unroll<static_cast<int>(kLine / kStep)>([&](auto s) HWY_ATTR
                                              __attribute__((always_inline)) { full_step(k + s * kStep); });
    }
  }
  for (; k + kStep <= n; k += kStep) full_step(k);
  if (k < n) {
    VF wv[NR];
    Unroll<NR>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      wv[j] = LoadTail<Element>(w_rows[j] + k * Element::kBytes, n - k);
    });
    step(k, wv);
  }
  Unroll<kGroups>([&](auto g) HWY_ATTR __attribute__((always_inline)) {
    SumLanes4(acc[4 * g], acc[4 * g + 1], acc[4 * g + 2], acc[4 * g + 3], sums + 4 * g);
  });
}

using TileFunction = void (*)(const float*, int64_t, const uint8_t*, int64_t, int64_t, float*);

// Tiles of 1 to Rows rows of x with Cols rows of w.
template <class Element, WeightsFrom kFrom, int Rows, int Cols>
struct Tiles {
  template <int... I>
  static constexpr std::array<TileFunction, Rows> all(std::integer_sequence<int, I...>) {
    return {&Tile<I + 1, Cols, Element, kFrom>...};
  }
  static constexpr auto kTable = all(std::make_integer_sequence<int, Rows>());

  // sums[i * Cols + j] for rows i < `rows` and columns j < the result, which is Cols, or 1 where fewer than
  // Cols are `left`: then one row of w stands for all.
  static int run(int rows, const float* x, int64_t x_stride, const uint8_t* w, int64_t w_stride, int64_t left,
                 int64_t n, float* sums) {
    const int width = left >= Cols ? Cols : 1;
    kTable[static_cast<size_t>(rows - 1)](x, x_stride, w, width == 1 ? 0 : w_stride, n, sums);
    return width;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
