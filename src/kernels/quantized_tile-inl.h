// Integer dot products of quantized weights with many QuantizedRows, once per instruction set. Sums within a
// block are exact, so they may be taken in any order; what is rounded is one chain an output (Chain), the
// same as with one row. Weights are unpacked into a panel with a column in each lane, then used by every tile
// of rows.

#include <array>
#include <utility>

#include "kernels/quantized_panel-inl.h"

#if defined(QWENCH_KERNELS_QUANTIZED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_QUANTIZED_TILE_INL_H_
#undef QWENCH_KERNELS_QUANTIZED_TILE_INL_H_
#else
#define QWENCH_KERNELS_QUANTIZED_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Accumulators of a tile: 12 of 16 registers, or 24 of 32 (NEON keeps each sum as two).
using DP = DI;
constexpr int kPanelLanes = static_cast<int>(kLanes);
constexpr int kPanelVectors = HWY_TARGET == HWY_SCALAR ? 8 : 2;
constexpr int kPanelCols = kPanelVectors * kPanelLanes;
constexpr int kPanelsWide = kPanelCols / static_cast<int>(kPanelRows);
static_assert(kPanelCols % kPanelRows == 0);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kQuantRows = 12;
#else
constexpr int kQuantRows = 6;
#endif

// Weights of kPanelCols columns and some blocks of 32, as 16-bit numbers: [k / 2, column, k % 2].
struct QuantPanel {
  int16_t* values;
  float* scales;  // [blocks * kScales, kPanelCols]
  float* mins;
};

// The scales and minima of parts [first, first + parts) of a panel, those of a block in rows of kCols.
template <class P, int kCols = kPanelCols>
HWY_INLINE void FillScales(const uint8_t* panel, const PanelGeometry<P>& g, int64_t first, int parts,
                           float* scales, float* mins) {
  const uint8_t* from = panel + g.quants + first / P::kParts * P::kScaleBytes;
  for (int part = 0; part < parts; part += P::kParts, from += P::kScaleBytes) {
    FetchLines<P::kScaleBytes>(from + g.ahead(first + part).scales);
    const int at = part * P::kScales * kCols;
    P::Scales::Get(from, scales + at, mins + at, kCols);
  }
}

// Writes parts [first, first + parts) of kPanelsWide panels, whole blocks.
template <class P>
HWY_NOINLINE void FillPanel(const uint8_t* const* panels, const PanelGeometry<P>& g, int64_t first, int parts,
                            const QuantPanel& panel) {
  for (int w = 0; w < kPanelsWide; ++w) {
    const int col = w * static_cast<int>(kPanelRows);
    FillScales<P>(panels[w], g, first, parts, panel.scales + col, panel.mins + col);
    const uint8_t* quants = panels[w] + first * P::kPartBytes;
    for (int part = 0; part < parts; ++part, quants += P::kPartBytes) {
      FetchLines<P::kPartBytes>(quants + g.ahead(first + part).quants);
      ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
        Pairs vectors[P::kBits];
        Unroll<P::kBits>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          vectors[v] = LoadPairs(quants + v * kVectorBytes + row * 4);
        });
        int16_t* to = panel.values + (part * 16 * kPanelCols + col + row) * 2;
        Unroll<16>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
          StorePairs(Moved(P::template Get<p>(vectors), P::kMove), to + p * kPanelCols * 2);
        });
      });
    }
  }
}

// acc[i, column] += x[i] · w[column] over the panel's blocks, for MR rows of x that begin with row `first`
// and block `block`.
template <int MR, int kScales, bool kMins>
HWY_NOINLINE void QuantTile(const QuantPanel& panel, int parts, const QuantizedRows& x, int64_t first,
                            int64_t block, float* acc) {
  const DP d;
  const DF df;
  constexpr int kCount = MR * kPanelVectors;
  constexpr int kPairs = 16 / kScales;
  const int64_t stride = x.stride;
  const int64_t x_blocks = stride / 32;
  const float* scales_x = x.scales;
  const float* sums_x = kScales == 1 ? x.sums : x.half_sums;
  const float* scales = panel.scales;
  const float* mins = panel.mins;
  const int16_t* w = panel.values;
  for (int p = 0; p < parts; ++p) {
    const int64_t at = first * x_blocks + block + p;
    const int16_t* xv = x.values + at * 32;
    for (int h = 0; h < kScales; ++h, w += kPairs * kPanelCols * 2, xv += kPairs * 2) {
      VI sums[kCount];
      Unroll<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) { sums[i] = hn::Zero(d); });
#if HWY_TARGET == HWY_SCALAR
      for (int pair = 0; pair < kPairs; ++pair) {
        for (int i = 0; i < MR; ++i) {
          const int16_t* xs = xv + i * stride + pair * 2;
          for (int v = 0; v < kPanelVectors; ++v) {
            const int16_t* ws = w + (pair * kPanelCols + v) * 2;
            sums[i * kPanelVectors + v] =
                hn::Add(sums[i * kPanelVectors + v], hn::Set(d, ws[0] * xs[0] + ws[1] * xs[1]));
          }
        }
      }
#else
      const hn::Repartition<int16_t, DP> d16;
      VI more[kCount];  // used where products are added to two sums
      Unroll<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) { more[i] = hn::Zero(d); });
      // Three rows a pointer: addresses of one addition each.
      constexpr int kBases = (MR + 2) / 3;
      const int16_t* bases[kBases];
      for (int i = 0; i < kBases; ++i) bases[i] = xv + 3 * i * stride;
      for (int pair = 0; pair < kPairs; ++pair) {
        const int16_t* at_pair = w + pair * kPanelCols * 2;
        hn::Vec<decltype(d16)> wv[kPanelVectors];
        Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          wv[v] = hn::LoadU(d16, at_pair + v * kPanelLanes * 2);
        });
        Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
          const auto* two = reinterpret_cast<const uint8_t*>(bases[i / 3] + i % 3 * stride);
          const auto xs = hn::BitCast(d16, hn::Set(d, load_unaligned<int32_t>(two)));
          Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
            constexpr int kAt = i * kPanelVectors + v;
            sums[kAt] = AddProducts(d, wv[v], xs, sums[kAt], more[kAt]);
          });
        });
        Unroll<kBases>([&](auto i) HWY_ATTR __attribute__((always_inline)) { bases[i] += 2; });
      }
      Unroll<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
        sums[i] = hn::RearrangeToOddPlusEven(sums[i], more[i]);
      });
#endif
      Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        const VF scale_w = hn::LoadU(df, scales + v * kPanelLanes);
        Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
          float* to = acc + i * kPanelCols + v * kPanelLanes;
          const VF scale_x = hn::Set(df, scales_x[at + i * x_blocks]);
          VF sum = Chain(df, sums[i * kPanelVectors + v], scale_w, scale_x, hn::LoadU(df, to));
          if constexpr (kMins) {
            const float of_x = sums_x[(at + i * x_blocks) * kScales + h];
            sum = hn::MulAdd(hn::LoadU(df, mins + v * kPanelLanes), hn::Set(df, of_x), sum);
          }
          hn::StoreU(sum, df, to);
        });
      });
      scales += kPanelCols;
      mins += kPanelCols;
    }
  }
}

using QuantTileFunction = void (*)(const QuantPanel&, int, const QuantizedRows&, int64_t, int64_t, float*);

// Tiles of 1 to kQuantRows rows.
template <int kScales, bool kMins, int... I>
constexpr std::array<QuantTileFunction, kQuantRows> quant_tiles(std::integer_sequence<int, I...>) {
  return {&QuantTile<I + 1, kScales, kMins>...};
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
