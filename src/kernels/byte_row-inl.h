// Integer dot products of a panel of quantized weights with one or a few ByteRows, once per instruction set.
// The chain of roundings is the same as with many rows (byte_tile-inl.h).

#include "kernels/byte_products-inl.h"
#include "kernels/byte_rows.h"

#if defined(QWENCH_KERNELS_BYTE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_BYTE_ROW_INL_H_
#undef QWENCH_KERNELS_BYTE_ROW_INL_H_
#else
#define QWENCH_KERNELS_BYTE_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// sums[r][row] = row first + r of x . row for the 8 rows of a panel, without bias; rows of x behind `last`
// are those of `last` again.
template <class P, int MR>
HWY_INLINE void PanelTimesBytes(const uint8_t* panel, const PanelGeometry<P>& g, const ByteRows& x,
                                int64_t first, int64_t last, int64_t cols, float (*sums)[kPanelRows]) {
  static_assert(P::kScales == 1 && P::kMins == (P::kMove == 0));
  const DG d;
  const DGF df;
  const int8_t* values[MR];
  int64_t blocks[MR];
  for (int r = 0; r < MR; ++r) {
    const int64_t row = std::min(first + r, last);
    values[r] = x.values + row * x.stride;
    blocks[r] = row * x.stride / 32;
  }
  ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
    HWY_ALIGN float scales[P::kParts * kPanelRows];
    HWY_ALIGN float mins[P::kMins ? P::kParts * kPanelRows : 1];
    const uint8_t* part = panel + row * 4;
    const uint8_t* block_scales = panel + g.quants;
    VGF acc[MR];
    Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) { acc[r] = hn::Zero(DGF()); });
    for (int64_t block = 0; block < cols / 32; block_scales += P::kScaleBytes) {
      const auto ahead = g.ahead(block);
      FetchLines<P::kScaleBytes>(block_scales + ahead.scales);
      P::Scales::Get(block_scales, scales, mins, kPanelRows);
      for (int i = 0; i < P::kParts; ++i, ++block, part += P::kPartBytes) {
        FetchLines<P::kPartBytes>(part + ahead.quants);
        VG totals[MR];
        VG sums_of_quads[MR];
        VG more[MR];
        ForQuads<P>(
            d, part, [&](auto q, auto quads) HWY_ATTR __attribute__((always_inline)) {
              constexpr int kQuads = kQuadsInSum<P::kBits>;
              Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
                if constexpr (q % kQuads == 0) {
                  sums_of_quads[r] = hn::Zero(d);
                  more[r] = hn::Zero(d);
                }
                const VG of_x = QuadOfX(d, values[r] + block * 32 + q * 4);
                sums_of_quads[r] = AddQuads(d, quads, of_x, sums_of_quads[r], more[r]);
                if constexpr (q % kQuads == kQuads - 1) {
                  const VG total = TotalOfQuads(d, sums_of_quads[r], more[r]);
                  totals[r] = q < kQuads ? total : hn::Add(totals[r], total);
                }
              });
            });
        Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
          const int64_t at = blocks[r] + block;
          const VGF total = hn::ConvertTo(df, totals[r]);
          const VGF min = P::kMins ? hn::LoadU(df, mins + i * kPanelRows + row) : hn::Set(df, P::kMove);
          const VGF sum_x = hn::Set(df, P::kMins ? x.sums[at] : x.totals[at]);
          acc[r] = ByteChain<P::kMins>(df, total, hn::LoadU(df, scales + i * kPanelRows + row),
                                       hn::Set(df, x.scales[at]), min, sum_x, acc[r]);
        });
      }
    }
    Unroll<MR>([&](auto r) HWY_ATTR
               __attribute__((always_inline)) { hn::StoreU(acc[r], DGF(), sums[r] + row); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
