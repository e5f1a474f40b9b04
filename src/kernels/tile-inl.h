// The micro-kernel of linear and attention: dot products of a few rows of x with a few rows of w, once per
// instruction set.

#include <array>
#include <utility>

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
constexpr int kMostSums = kTileRows * (kTileCols + 1);

// sums[i * NR + j] = sum over k < n of x[i, k] w[j, k]: one vector of partial sums for each, lane l adding
// the elements k = l (mod kLanes) in ascending order, then SumLanes4. x is readable and zero up to a multiple
// of kLanes; w need not be. sums has room for a multiple of 4.
template <int MR, int NR, class Element>
void Tile(const float* x, int64_t x_stride, const uint8_t* w, int64_t w_stride, int64_t n, float* sums) {
  constexpr size_t kCount = size_t{MR} * NR;
  VF acc[(kCount + 3) / 4 * 4];
  for (VF& a : acc) a = hn::Zero(DF());
  const float* x_rows[MR];
  for (int i = 0; i < MR; ++i) x_rows[i] = x + i * x_stride;
  const uint8_t* w_rows[NR];
  for (int j = 0; j < NR; ++j) w_rows[j] = w + j * w_stride;
  const auto step = [&](int64_t k, const VF* wv) HWY_ATTR {
    for (int i = 0; i < MR; ++i) {
      const VF xv = hn::LoadU(DF(), x_rows[i] + k);
      for (int j = 0; j < NR; ++j) acc[i * NR + j] = hn::MulAdd(xv, wv[j], acc[i * NR + j]);
    }
  };
  int64_t k = 0;
  for (; k + kStep <= n; k += kStep) {
    VF wv[NR];
    for (int j = 0; j < NR; ++j) wv[j] = Element::Load(w_rows[j] + k * Element::kBytes);
    step(k, wv);
  }
  if (k < n) {
    VF wv[NR];
    for (int j = 0; j < NR; ++j) wv[j] = LoadTail<Element>(w_rows[j] + k * Element::kBytes, n - k);
    step(k, wv);
  }
  for (size_t s = 0; s < kCount; s += 4) SumLanes4(acc[s], acc[s + 1], acc[s + 2], acc[s + 3], sums + s);
}

using TileFunction = void (*)(const float*, int64_t, const uint8_t*, int64_t, int64_t, float*);

// tiles[i][j] has i + 1 rows of x and j + 1 rows of w.
template <class Element, int Rows, int Cols>
struct Tiles {
  template <int I, int... J>
  static constexpr std::array<TileFunction, Cols> row(std::integer_sequence<int, J...>) {
    return {&Tile<I + 1, J + 1, Element>...};
  }
  template <int... I>
  static constexpr std::array<std::array<TileFunction, Cols>, Rows> all(std::integer_sequence<int, I...>) {
    return {row<I>(std::make_integer_sequence<int, Cols>())...};
  }
  static constexpr auto kTable = all(std::make_integer_sequence<int, Rows>());
  static TileFunction get(int rows, int cols) {
    return kTable[static_cast<size_t>(rows - 1)][static_cast<size_t>(cols - 1)];
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
