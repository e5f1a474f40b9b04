#include "kernels/linear_quantized.h"

#include <algorithm>
#include <utility>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear_quantized.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
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

// Columns [from, to) of y, of which `n` is the first of the panel's, with all rows of x, blocks from k on.
template <int kScales, bool kMins>
HWY_NOINLINE void AllRows(const LinearArgs& a, int64_t n, int64_t from, int64_t to, int64_t k, int parts,
                          const QuantPanel* panels) {
  static constexpr auto kTiles = quant_tiles<kScales, kMins>(std::make_integer_sequence<int, kQuantRows>());
  const bool last = k + parts * 32 >= a.cols;
  HWY_ALIGN float acc[kQuantRows * kPanelCols];
  // Tiles of about as many rows each: a narrow last one would cost as much as a wide one.
  const int64_t tiles = (a.rows + kQuantRows - 1) / kQuantRows;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t m = a.rows * tile / tiles;
    const int mr = static_cast<int>(a.rows * (tile + 1) / tiles - m);
    for (int64_t j = n; j < to; j += kPanelCols) {
      const int64_t first = std::max(j, from);
      const auto width = static_cast<size_t>(std::min(j + kPanelCols, to) - first);
      float* y = a.y + m * a.y_stride + first;
      float* of_y = acc + (first - j);
      if (k == 0) {
        std::fill_n(acc, mr * kPanelCols, 0.0F);
      } else {
        for (int i = 0; i < mr; ++i) std::copy_n(y + i * a.y_stride, width, of_y + i * kPanelCols);
      }
      kTiles[static_cast<size_t>(mr - 1)](panels[(j - n) / kPanelCols], parts, *a.quantized, m, k / 32, acc);
      for (int i = 0; i < mr; ++i) {
        float* row = of_y + i * kPanelCols;
        if (last && a.bias != nullptr) {
          for (size_t c = 0; c < width; ++c) row[c] += a.bias[first + static_cast<int64_t>(c)];
        }
        std::copy_n(row, width, y + i * a.y_stride);
      }
    }
  }
}

template <class P>
HWY_NOINLINE void ManyRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int64_t kTogether = int64_t{kPanelsTogether} * kPanelCols;
  const PanelGeometry<P> g(a.cols);
  QuantPanel panels[kPanelsTogether];
  for (int i = 0; i < kPanelsTogether; ++i) {
    float* at = scratch + i * (kPanelValues / 2 + 2 * kPanelScales);
    panels[i] = {reinterpret_cast<int16_t*>(at), at + kPanelValues / 2, at + kPanelValues / 2 + kPanelScales};
  }
  const auto* w = reinterpret_cast<const uint8_t*>(a.w);
  const int64_t last_panel = (end - 1) / kPanelRows;
  for (int64_t n = begin / kPanelRows * kPanelRows; n < end; n += kTogether) {
    const int64_t to = std::min(n + kTogether, end);
    for (int64_t k = 0; k < a.cols; k += kPanelParts * 32) {
      const int parts = static_cast<int>(std::min<int64_t>(kPanelParts, (a.cols - k) / 32));
      for (int64_t j = n; j < to; j += kPanelCols) {
        const uint8_t* wide[kPanelsWide];
        for (int i = 0; i < kPanelsWide; ++i)
          wide[i] = w + std::min(j / kPanelRows + i, last_panel) * g.bytes;
        FillPanel<P>(wide, g, k / 32, parts, panels[(j - n) / kPanelCols]);
      }
      AllRows<P::kScales, P::kMins>(a, n, std::max(n, begin), to, k, parts, panels);
    }
  }
}

void ManyQuantizedRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  WithPanelType(a.dtype, [&](auto type) { ManyRows<decltype(type)>(a, begin, end, scratch); });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(ManyQuantizedRows);

void linear_quantized(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  if (args.rows <= kFewRows && args.rows * args.cols <= kMostOfFewRows) {
    linear_quantized_few(args, begin, end, scratch);
  } else {
    HWY_DYNAMIC_DISPATCH(ManyQuantizedRows)(args, begin, end, scratch);
  }
}

}  // namespace qwench
#endif
