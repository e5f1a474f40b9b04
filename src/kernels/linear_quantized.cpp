#include "kernels/linear_quantized.h"

#include <algorithm>
#include <utility>

#include "kernels/activation_tiles.h"
#include "kernels/vnni_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear_quantized.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/amx_quantized-inl.h"
#include "kernels/byte_tile-inl.h"
#include "kernels/quantized_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Tiles of a type: panels of kCols columns and kParts blocks, of which kTogether share the rows of x, and
// their products with rows [m, m + mr) of x, blocks from `block` on.

// 48 or 64 columns of 512 numbers are 48 or 64 KB of the L2 cache.
template <class P>
struct VectorTiles {
  static constexpr bool kWholeTiles = false;
  static constexpr int kCols = kPanelCols;
  static constexpr int kParts = 16;
  static constexpr int kTogether = std::max(1, 48 / kCols);
  template <class Panel>
  static void fill(const uint8_t* const* panels, const PanelGeometry<P>& g, int64_t first, int parts,
                   const Panel& panel) {
    FillPanel<P>(panels, g, first, parts, panel);
  }
};

template <class P, bool kBytes>
struct TilesOf : VectorTiles<P> {
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
struct TilesOf<P, true> : VectorTiles<P> {
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

#if HWY_TARGET == HWY_AVX3_DL
// By tiles of AMX; rows [m, m + mr) begin at a multiple of 16. Many columns and blocks, as x and y come from
// memory for each group of panels: 400 KB of an L2 cache of 2 MB.
template <class P, bool kBytes>
struct AmxTilesOf {
  using Panel = SignedPanel;
  using Value = uint8_t;
  static constexpr int kRows = amx::kRows;
  static constexpr bool kWholeTiles = true;
  static constexpr int kCols = kTileCols;
  static constexpr int kParts = 32;
  static constexpr int kTogether = 16;
  static constexpr int kPlanes = kBytes ? 1 : 2;
  static void fill(const uint8_t* const* panels, const PanelGeometry<P>& g, int64_t first, int parts,
                   const Panel& panel) {
    FillSigned<P>(panels, g, first, parts, panel);
  }
  static void times(const LinearArgs& a, const Panel& panel, int parts, int64_t m, int mr, int64_t block,
                    float* acc) {
    static constexpr auto kTiles =
        signed_tiles<kPlanes, P::kScales, P::kMins>(std::make_integer_sequence<int, kRows / 4>());
    TileOfX x;
    if constexpr (kBytes) {
      x = of_rows(*a.bytes, m, block);
      x.sums = a.bytes->sums + m * x.stride + block;
    } else {
      x = of_rows(*a.quantized, m, block);
      const int64_t at = (m * x.stride + block) * P::kScales;
      x.sums = (P::kScales == 1 ? a.quantized->sums : a.quantized->half_sums) + at;
    }
    kTiles[static_cast<size_t>(mr - 1) / 4](panel, parts, x, acc);
  }

 private:
  template <class Rows>
  static TileOfX of_rows(const Rows& rows, int64_t m, int64_t block) {
    const int64_t blocks = rows.stride / 32;
    const uint8_t* bytes = rows.tiles + ActivationTiles::offset(m, blocks, kPlanes);
    return {bytes + block * kPlanes * ActivationTiles::kPlaneBytes, rows.scales + m * blocks + block, nullptr,
            blocks};
  }
};
#endif

// Without a call where all columns are copied, which are few.
template <int kCols>
HWY_INLINE void CopyColumns(const float* from, size_t count, float* to) {
  if (count == size_t{kCols}) {
    Unroll<kCols / static_cast<int>(kLanes)>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      hn::StoreU(hn::LoadU(DF(), from + i * kStep), DF(), to + i * kStep);
    });
  } else {
    std::copy_n(from, count, to);
  }
}

// Columns [from, to) of y, of which `n` is the first of the panel's, with all rows of x, blocks from k on.
template <class Tiles>
HWY_NOINLINE void AllRows(const LinearArgs& a, int64_t n, int64_t from, int64_t to, int64_t k, int parts,
                          const typename Tiles::Panel* panels) {
  const bool last = k + parts * 32 >= a.cols;
  constexpr int kCols = Tiles::kCols;
  HWY_ALIGN float acc[Tiles::kRows * kCols] = {};  // also of rows that fill a tile
  // Tiles of about as many rows each, where a narrow last one would cost as much as a wide one.
  const int64_t tiles = (a.rows + Tiles::kRows - 1) / Tiles::kRows;
  const auto first_row = [&](int64_t tile) {
    return Tiles::kWholeTiles ? std::min(tile * Tiles::kRows, a.rows) : a.rows * tile / tiles;
  };
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t m = first_row(tile);
    const int mr = static_cast<int>(first_row(tile + 1) - m);
    for (int64_t j = n; j < to; j += kCols) {
      const int64_t first = std::max(j, from);
      const auto width = static_cast<size_t>(std::min(j + kCols, to) - first);
      float* y = a.y + m * a.y_stride + first;
      float* of_y = acc + (first - j);
      if (k == 0) {
        std::fill_n(acc, mr * kCols, 0.0F);
      } else {
        for (int i = 0; i < mr; ++i) CopyColumns<kCols>(y + i * a.y_stride, width, of_y + i * kCols);
      }
      Tiles::times(a, panels[(j - n) / kCols], parts, m, mr, k / 32, acc);
      for (int i = 0; i < mr; ++i) {
        float* row = of_y + i * kCols;
        if (last && a.bias != nullptr) {
          for (size_t c = 0; c < width; ++c) row[c] += a.bias[first + static_cast<int64_t>(c)];
        }
        CopyColumns<kCols>(row, width, y + i * a.y_stride);
      }
    }
  }
}

template <class P, class Tiles>
HWY_NOINLINE void ManyRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int kCols = Tiles::kCols;
  constexpr int kWide = kCols / static_cast<int>(kPanelRows);
  constexpr int kTogether = Tiles::kTogether;
  constexpr int kParts = Tiles::kParts;
  constexpr int64_t kValues = int64_t{kParts} * 32 * kCols * int64_t{sizeof(typename Tiles::Value)} / 4;
  constexpr int64_t kScales = int64_t{kParts} * 2 * kCols;
  static_assert(kTogether * (kValues + 2 * kScales) <= kLinearScratch);
  const PanelGeometry<P> g(a.cols);
  typename Tiles::Panel panels[kTogether];
  for (int i = 0; i < kTogether; ++i) {
    float* at = scratch + i * (kValues + 2 * kScales);
    panels[i] = {reinterpret_cast<typename Tiles::Value*>(at), at + kValues, at + kValues + kScales};
  }
  const auto* w = reinterpret_cast<const uint8_t*>(a.w);
  const int64_t last_panel = (end - 1) / kPanelRows;
  for (int64_t n = begin / kPanelRows * kPanelRows; n < end; n += kTogether * kCols) {
    const int64_t to = std::min<int64_t>(n + kTogether * kCols, end);
    for (int64_t k = 0; k < a.cols; k += kParts * 32) {
      const int parts = static_cast<int>(std::min<int64_t>(kParts, (a.cols - k) / 32));
      for (int64_t j = n; j < to; j += kCols) {
        const uint8_t* wide[kWide];
        for (int i = 0; i < kWide; ++i) wide[i] = w + std::min(j / kPanelRows + i, last_panel) * g.bytes;
        Tiles::fill(wide, g, k / 32, parts, panels[(j - n) / kCols]);
      }
      AllRows<Tiles>(a, n, std::max(n, begin), to, k, parts, panels);
    }
  }
}

template <class P, bool kBytes>
void ManyRowsOf(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
#if HWY_TARGET == HWY_AVX3_DL
  if (amx_in_use()) {
    constexpr int kRows = amx::kRows;
    constexpr int kWeightRows = 8 / P::kScales;
    constexpr int kXBytes = 32 / P::kScales;
    const amx::Shapes shapes({kRows, kRows, kRows, kRows, kRows, kRows, kWeightRows, kWeightRows},
                             {64, 64, 64, 64, kXBytes, kXBytes, 64, 64});
    return ManyRows<P, AmxTilesOf<P, kBytes>>(a, begin, end, scratch);
  }
#endif
  ManyRows<P, TilesOf<P, kBytes>>(a, begin, end, scratch);
}

void ManyQuantizedRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  WithPanelType(a.dtype, [&](auto type) {
    using P = decltype(type);
    if constexpr (P::kBytes) {
      if (a.bytes != nullptr) return ManyRowsOf<P, true>(a, begin, end, scratch);
    }
    ManyRowsOf<P, false>(a, begin, end, scratch);
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
