#include "kernels/linear_quantized.h"

#include <algorithm>
#include <numeric>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear_quantized.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"
//
#include "kernels/quantized_row-inl.h"
#include "kernels/quantized_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Panels that share the rows of x while these are in the L1 cache, of so many blocks: 48 or 64 columns of 512
// numbers are 48 or 64 KB of the L2 cache.
constexpr int kPanelsTogether = std::max(1, 48 / kPanelCols);
constexpr int kPanelParts = 16;
constexpr int64_t kPanelValues = int64_t{kPanelParts} * 32 * kPanelCols;
constexpr int64_t kPanelScales = int64_t{kPanelParts} * 2 * kPanelCols;
static_assert(kPanelsTogether * (kPanelValues / 2 + 2 * kPanelScales) <= kLinearScratch);

// Pointers to the rows of w from n on, the last one in place of those from `end` on.
template <int N>
HWY_INLINE void RowsOf(const LinearArgs& a, int64_t row_bytes, int64_t n, int64_t end, const uint8_t** rows) {
  for (int j = 0; j < N; ++j) {
    rows[j] = reinterpret_cast<const uint8_t*>(a.w) + std::min(n + j, end - 1) * row_bytes;
  }
}

// The most columns of x that OneRow rearranges in scratch memory.
constexpr int64_t kMostOneRow = kLinearScratch * 4 / 72 * 32;

template <class Q>
void OneRow(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  const int64_t row_bytes = a.cols / Q::kSize * Q::kBytes;
  RowOfX row = {a.quantized->values, nullptr};
#if QWENCH_GROUP_OF_8
  auto* split = reinterpret_cast<int16_t*>(scratch);
  SplitEvenOdd(a.quantized->values, a.cols, split);
  row.values = split;
  if constexpr (Q::kOffset != 0) {
    constexpr int64_t kShare = 32 / Q::kScales;
    auto* offsets = reinterpret_cast<int32_t*>(scratch + a.cols / 2);
    for (int64_t i = 0; i < a.cols / kShare; ++i) {
      offsets[i] = Q::kOffset * std::accumulate(split + i * kShare, split + (i + 1) * kShare, 0);
    }
    row.offsets = offsets;
  }
#else
  (void)scratch;
#endif
  HWY_ALIGN float sums[kGroup];
  const uint8_t* w[kGroup];
  for (int64_t n = begin; n < end; n += kGroup) {
    RowsOf<kGroup>(a, row_bytes, n, end, w);
    OneRowGroup<Q>(w, kGroup * row_bytes, *a.quantized, row, a.cols, sums);
    for (int64_t j = n; j < std::min<int64_t>(end, n + kGroup); ++j) {
      a.y[j] = a.bias == nullptr ? sums[j - n] : sums[j - n] + a.bias[j];
    }
  }
}

// Panels [n, n + cols) with all rows of x, blocks from k on.
template <int kScales, bool kMins>
void AllRows(const LinearArgs& a, int64_t n, int64_t cols, int64_t k, int parts, const QuantPanel* panels) {
  static constexpr auto kTiles = quant_tiles<kScales, kMins>(std::make_integer_sequence<int, kQuantRows>());
  const bool last = k + parts * 32 >= a.cols;
  HWY_ALIGN float acc[kQuantRows * kPanelCols];
  for (int64_t m = 0; m < a.rows; m += kQuantRows) {
    const int mr = static_cast<int>(std::min<int64_t>(kQuantRows, a.rows - m));
    for (int64_t j = 0; j < cols; j += kPanelCols) {
      const auto width = static_cast<size_t>(std::min<int64_t>(kPanelCols, cols - j));
      float* y = a.y + m * a.y_stride + n + j;
      if (k == 0) {
        std::fill_n(acc, mr * kPanelCols, 0.0F);
      } else {
        for (int i = 0; i < mr; ++i) std::copy_n(y + i * a.y_stride, width, acc + i * kPanelCols);
      }
      kTiles[static_cast<size_t>(mr - 1)](panels[j / kPanelCols], parts, *a.quantized, m, k / 32, acc);
      for (int i = 0; i < mr; ++i) {
        if (last && a.bias != nullptr) {
          for (size_t c = 0; c < width; ++c)
            acc[i * kPanelCols + static_cast<int>(c)] += a.bias[n + j + static_cast<int64_t>(c)];
        }
        std::copy_n(acc + i * kPanelCols, width, y + i * a.y_stride);
      }
    }
  }
}

template <class Q>
void ManyRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int64_t kTogether = int64_t{kPanelsTogether} * kPanelCols;
  const int64_t row_bytes = a.cols / Q::kSize * Q::kBytes;
  QuantPanel panels[kPanelsTogether];
  for (int i = 0; i < kPanelsTogether; ++i) {
    float* at = scratch + i * (kPanelValues / 2 + 2 * kPanelScales);
    panels[i] = {reinterpret_cast<int16_t*>(at), at + kPanelValues / 2, at + kPanelValues / 2 + kPanelScales};
  }
  const uint8_t* w[kPanelCols];
  for (int64_t n = begin; n < end; n += kTogether) {
    const int64_t cols = std::min(kTogether, end - n);
    for (int64_t k = 0; k < a.cols; k += kPanelParts * 32) {
      const int parts = static_cast<int>(std::min<int64_t>(kPanelParts, (a.cols - k) / 32));
      for (int64_t j = 0; j < cols; j += kPanelCols) {
        RowsOf<kPanelCols>(a, row_bytes, n + j, end, w);
        for (const uint8_t*& row : w) row += k / Q::kSize * Q::kBytes;
        FillPanel<Q>(w, parts, panels[j / kPanelCols]);
      }
      AllRows<Q::kScales, Q::kMins>(a, n, cols, k, parts, panels);
    }
  }
}

template <class Q>
void OneOrMany(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.rows == 1 && a.cols <= kMostOneRow) {
    OneRow<Q>(a, begin, end, scratch);
  } else {
    ManyRows<Q>(a, begin, end, scratch);
  }
}

void LinearQuantized(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  switch (a.dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return;
    case DType::q8_0:
      return OneOrMany<QuantsQ8_0>(a, begin, end, scratch);
    case DType::q4_0:
      return OneOrMany<QuantsQ4_0>(a, begin, end, scratch);
    case DType::q4_1:
      return OneOrMany<QuantsQ4_1>(a, begin, end, scratch);
    case DType::q5_0:
      return OneOrMany<QuantsQ5_0>(a, begin, end, scratch);
    case DType::q5_1:
      return OneOrMany<QuantsQ5_1>(a, begin, end, scratch);
    case DType::q2_k:
      return OneOrMany<QuantsQ2K>(a, begin, end, scratch);
    case DType::q3_k:
      return OneOrMany<QuantsQ3K>(a, begin, end, scratch);
    case DType::q4_k:
      return OneOrMany<QuantsQ4K>(a, begin, end, scratch);
    case DType::q5_k:
      return OneOrMany<QuantsQ5K>(a, begin, end, scratch);
    case DType::q6_k:
      return OneOrMany<QuantsQ6K>(a, begin, end, scratch);
    case DType::iq4_nl:
      return OneOrMany<QuantsIq4Nl>(a, begin, end, scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(LinearQuantized);

void linear_quantized(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(LinearQuantized)(args, begin, end, scratch);
}

}  // namespace qwench
#endif
