// Integer dot products of quantized weights with many ByteRows, once per instruction set; as
// quantized_tile-inl.h, in bytes.

#include <array>
#include <utility>

#include "kernels/byte_products-inl.h"
#include "kernels/byte_rows.h"
#include "kernels/quantized_tile-inl.h"

#if defined(QWENCH_KERNELS_BYTE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_BYTE_TILE_INL_H_
#undef QWENCH_KERNELS_BYTE_TILE_INL_H_
#else
#define QWENCH_KERNELS_BYTE_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Weights of kPanelCols columns and some blocks of 32: [quad, column].
struct BytePanel {
  uint8_t* quads;
  float* scales;  // [blocks, kPanelCols]
  float* mins;
};

// Writes parts [first, first + parts) of kPanelsWide panels, whole blocks.
template <class P>
HWY_NOINLINE void FillPanel(const uint8_t* const* panels, const PanelGeometry<P>& g, int64_t first, int parts,
                            const BytePanel& panel) {
  for (int w = 0; w < kPanelsWide; ++w) {
    const int col = w * static_cast<int>(kPanelRows);
    FillScales<P>(panels[w], g, first, parts, panel.scales + col, panel.mins + col);
    const uint8_t* quants = panels[w] + first * P::kPartBytes;
    for (int part = 0; part < parts; ++part, quants += P::kPartBytes) {
      FetchLines<P::kPartBytes>(quants + g.ahead(first + part).quants);
      ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
        uint8_t* to = panel.quads + (part * 8 * kPanelCols + col + row) * 4;
        ForQuads<P>(
            DG(), quants + row * 4, [&](auto q, auto quads) HWY_ATTR __attribute__((always_inline)) {
              hn::StoreU(quads, DG(), reinterpret_cast<int32_t*>(to + q * kPanelCols * 4));
            });
      });
    }
  }
}

// Rows of a tile: fewer where sums of several quads are added to others, in as many registers.
template <int kBits>
constexpr int kByteRows = kQuadsInSum<kBits> == 8 ? kQuantRows : kQuantRows / 2;

// acc[i, column] += x[i] · w[column] over the panel's blocks, for MR rows of x that begin with row `first`
// and block `block`. `move` is added to each weight where there are no minima.
template <int MR, int kQuads, bool kMins>
HWY_NOINLINE void ByteTile(const BytePanel& panel, int parts, const ByteRows& x, int64_t first, int64_t block,
                           float move, float* acc) {
  const DP d;
  const DF df;
  constexpr int kCount = MR * kPanelVectors;
  const int64_t stride = x.stride;
  const int64_t x_blocks = stride / 32;
  const float* x_scales = x.scales;
  const float* x_sums = kMins ? x.sums : x.totals;
  const int8_t* values = x.values;
  const float* scales = panel.scales;
  const float* mins = panel.mins;
  const uint8_t* w = panel.quads;
  for (int p = 0; p < parts; ++p, scales += kPanelCols, mins += kPanelCols) {
    const int64_t at = first * x_blocks + block + p;
    // Three rows a pointer: addresses of one addition each.
    constexpr int kBases = (MR + 2) / 3;
    const int8_t* bases[kBases];
    for (int i = 0; i < kBases; ++i) bases[i] = values + at * 32 + 3 * i * stride;
    VI totals[kCount];
    for (int begin = 0; begin < 8; begin += kQuads) {
      VI sums[kCount];
      VI more[kCount];
      Unroll<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
        sums[i] = hn::Zero(d);
        more[i] = hn::Zero(d);
      });
      for (int quad = 0; quad < kQuads; ++quad, w += kPanelCols * 4) {
        VI wv[kPanelVectors];
        Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          wv[v] = LoadAnywhere(d, w + v * kPanelLanes * 4);
        });
        Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
          const VI xs = QuadOfX(d, bases[i / 3] + i % 3 * stride);
          Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
            constexpr int kAt = i * kPanelVectors + v;
            sums[kAt] = AddQuads(d, wv[v], xs, sums[kAt], more[kAt]);
          });
        });
        Unroll<kBases>([&](auto i) HWY_ATTR __attribute__((always_inline)) { bases[i] += 4; });
      }
      Unroll<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
        const VI total = TotalOfQuads(d, sums[i], more[i]);
        totals[i] = begin == 0 ? total : hn::Add(totals[i], total);
      });
    }
    VF scale_w[kPanelVectors];
    Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      scale_w[v] = hn::LoadU(df, scales + v * kPanelLanes);
    });
    Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      const int64_t of_x = at + i * x_blocks;
      const VF scale_x = hn::Set(df, x_scales[of_x]);
      const VF sum_x = hn::Set(df, x_sums[of_x]);
      Unroll<kPanelVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        float* to = acc + i * kPanelCols + v * kPanelLanes;
        const VF total = hn::ConvertTo(df, totals[i * kPanelVectors + v]);
        const VF min = kMins ? hn::LoadU(df, mins + v * kPanelLanes) : hn::Set(df, move);
        hn::StoreU(ByteChain<kMins>(df, total, scale_w[v], scale_x, min, sum_x, hn::LoadU(df, to)), df, to);
      });
    });
  }
}

using ByteTileFunction = void (*)(const BytePanel&, int, const ByteRows&, int64_t, int64_t, float, float*);

// Tiles of 1 to kByteRows rows.
template <int kBits, bool kMins, int... I>
constexpr std::array<ByteTileFunction, sizeof...(I)> byte_tiles(std::integer_sequence<int, I...>) {
  return {&ByteTile<I + 1, kQuadsInSum<kBits>, kMins>...};
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
