#include "kernels/linear.h"

#include <algorithm>

#include "kernels/linear_quantized.h"
#include "kernels/targets.h"
#include "kernels/unpack.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Rows of x up to which plain weights are converted in registers: so many fit one tile.
constexpr int kFusedRows = 4;
// With one row of x, weights' rows read side by side.
constexpr int kVectorCols = 4;

struct Geometry {
  int64_t row_bytes;    // of a row of w
  int64_t chunk_bytes;  // of a chunk of a row
};

Geometry geometry(const LinearArgs& a) {
  return {static_cast<int64_t>(bytes_of(a.dtype, static_cast<uint64_t>(a.cols))),
          static_cast<int64_t>(bytes_of(a.dtype, static_cast<uint64_t>(kLinearChunk)))};
}

// Adds a tile's sums [mr, sums_stride] of one chunk, the first nr of each row, to y, and the bias with the
// last chunk.
void Accumulate(const LinearArgs& a, int64_t m, int mr, int64_t n, int nr, int64_t k, const float* sums,
                int sums_stride) {
  const bool last = k + kLinearChunk >= a.cols;
  for (int i = 0; i < mr; ++i) {
    float* y = a.y + (m + i) * a.y_stride + n;
    for (int j = 0; j < nr; ++j) {
      float sum = sums[i * sums_stride + j];
      if (k > 0) sum = y[j] + sum;
      if (last && a.bias != nullptr) sum += a.bias[n + j];
      y[j] = sum;
    }
  }
}

// A few rows of x: weights are converted in registers and read once.
template <class Element, int Rows, int Cols>
void FusedTiles(const LinearArgs& a, int64_t begin, int64_t end) {
  const Geometry g = geometry(a);
  const int mr = static_cast<int>(a.rows);
  const auto* w = reinterpret_cast<const uint8_t*>(a.w);
  HWY_ALIGN float sums[kMostSums];
  int width = 0;
  for (int64_t n = begin; n < end; n += width) {
    for (int64_t k = 0; k < a.cols; k += kLinearChunk) {
      width = Tiles<Element, WeightsFrom::memory, Rows, Cols>::run(
          mr, a.x + k, a.x_stride, w + n * g.row_bytes + k * Element::kBytes, g.row_bytes, end - n,
          std::min(kLinearChunk, a.cols - k), sums);
      Accumulate(a, 0, mr, n, width, k, sums, Cols);
    }
  }
}

template <class Element>
void Fused(const LinearArgs& a, int64_t begin, int64_t end) {
  if (a.rows == 1) {
    FusedTiles<Element, 1, kVectorCols>(a, begin, end);
  } else {
    FusedTiles<Element, kFusedRows, kTileCols>(a, begin, end);
  }
}

// All rows of x with `cols` rows of f32 weights, one chunk.
void Panel(const LinearArgs& a, int64_t n, int64_t cols, int64_t k, const uint8_t* w, int64_t w_stride) {
  const int64_t count = std::min(kLinearChunk, a.cols - k);
  HWY_ALIGN float sums[kMostSums];
  for (int64_t m = 0; m < a.rows; m += kTileRows) {
    const int mr = static_cast<int>(std::min<int64_t>(kTileRows, a.rows - m));
    int width = 0;
    for (int64_t j = 0; j < cols; j += width) {
      width = Tiles<ElementF32, WeightsFrom::cache, kTileRows, kTileCols>::run(
          mr, a.x + m * a.x_stride + k, a.x_stride, w + j * w_stride, w_stride, cols - j, count, sums);
      Accumulate(a, m, mr, n + j, width, k, sums, kTileCols);
    }
  }
}

// Many rows of x: a panel of weights is widened into scratch memory, then used by every tile of rows.
void Panels(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int64_t kStride = kLinearChunk + 16;
  const Geometry g = geometry(a);
  for (int64_t n = begin; n < end; n += kLinearPanel) {
    const int64_t cols = std::min(kLinearPanel, end - n);
    for (int64_t k = 0; k < a.cols; k += kLinearChunk) {
      const int64_t count = std::min(kLinearChunk, a.cols - k);
      const auto bytes = static_cast<int64_t>(bytes_of(a.dtype, static_cast<uint64_t>(count)));
      for (int64_t j = 0; j < cols; ++j) {
        // The rows' chunks lie apart, too short for the processor to foresee the next.
        const auto* ahead = reinterpret_cast<const uint8_t*>(a.w) + (n + j + 4) * g.row_bytes +
                            k / kLinearChunk * g.chunk_bytes;
        for (int64_t b = 0; b < bytes; b += 64) hwy::Prefetch(ahead + b);
        unpack(a.dtype, a.w + (n + j) * g.row_bytes, k, count, scratch + j * kStride);
      }
      Panel(a, n, cols, k, reinterpret_cast<const uint8_t*>(scratch), kStride * 4);
    }
  }
}

void LinearRange(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.rows <= kFusedRows) {
    switch (a.dtype) {
      case DType::f32:
        Fused<ElementF32>(a, begin, end);
        return;
      case DType::f16:
        Fused<ElementF16>(a, begin, end);
        return;
      case DType::bf16:
        Fused<ElementBf16>(a, begin, end);
        return;
      default:
        break;
    }
  }
  Panels(a, begin, end, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(LinearRange);

void linear(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  if (is_quantized(args.dtype)) {
    linear_quantized(args, begin, end, scratch);
  } else {
    HWY_DYNAMIC_DISPATCH(LinearRange)(args, begin, end, scratch);
  }
}

}  // namespace qwench
#endif
