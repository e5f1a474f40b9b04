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
#include "kernels/byte_tile-inl.h"
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

// Tiles of a type: with rows [m, m + mr) of x, blocks from `block` on.
template <class P, bool kBytes>
struct TilesOf {
  using Panel = QuantPanel;
  using Value = int16_t;
  static constexpr int kRows = kQuantRows;
  static void times(const LinearArgs& a, const Panel& panel, int parts, int64_t m, int mr, int64_t block,
                    float* acc) {
    static constexpr auto kTiles =
        quant_tiles<P::kScales, P::kMins>(std::make_integer_sequence<int, kRows>());
    kTiles[static_cast<size_t>(mr - 1)](panel, parts, *a.quantized, m, block, acc);
  }
};

template <class P>
struct TilesOf<P, true> {
  using Panel = BytePanel;
  using Value = uint8_t;
  static constexpr int kRows = kByteRows<P::kBits>;
  static void times(const LinearArgs& a, const Panel& panel, int parts, int64_t m, int mr, int64_t block,
                    float* acc) {
    static_assert(P::kScales == 1 && P::kMins == (P::kMove == 0));
    static constexpr auto kTiles = byte_tiles<P::kBits, P::kMins>(std::make_integer_sequence<int, kRows>());
    kTiles[static_cast<size_t>(mr - 1)](panel, parts, *a.bytes, m, block, P::kMove, acc);
  }
};

// Columns [from, to) of y, of which `n` is the first of the panel's, with all rows of x, blocks from k on.
template <class Tiles>
HWY_NOINLINE void AllRows(const LinearArgs& a, int64_t n, int64_t from, int64_t to, int64_t k, int parts,
                          const typename Tiles::Panel* panels) {
  const bool last = k + parts * 32 >= a.cols;
  HWY_ALIGN float acc[Tiles::kRows * kPanelCols];
  // Tiles of about as many rows each: a narrow last one would cost as much as a wide one.
  const int64_t tiles = (a.rows + Tiles::kRows - 1) / Tiles::kRows;
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
      Tiles::times(a, panels[(j - n) / kPanelCols], parts, m, mr, k / 32, acc);
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

template <class P, bool kBytes>
HWY_NOINLINE void ManyRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  using Tiles = TilesOf<P, kBytes>;
  constexpr int64_t kTogether = int64_t{kPanelsTogether} * kPanelCols;
  const PanelGeometry<P> g(a.cols);
  typename Tiles::Panel panels[kPanelsTogether];
  for (int i = 0; i < kPanelsTogether; ++i) {
    float* at = scratch + i * (kPanelValues / 2 + 2 * kPanelScales);
    panels[i] = {reinterpret_cast<typename Tiles::Value*>(at), at + kPanelValues / 2,
                 at + kPanelValues / 2 + kPanelScales};
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
      AllRows<Tiles>(a, n, std::max(n, begin), to, k, parts, panels);
    }
  }
}

void ManyQuantizedRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  WithPanelType(a.dtype, [&](auto type) {
    using P = decltype(type);
    if constexpr (P::kBytes) {
      if (a.bytes != nullptr) return ManyRows<P, true>(a, begin, end, scratch);
    }
    ManyRows<P, false>(a, begin, end, scratch);
  });
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
