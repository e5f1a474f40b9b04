// Integer dot products of a panel of quantized weights with one or a few QuantizedRows, once per instruction
// set. The chain of roundings is the same as with many rows (quantized_tile-inl.h).

#include "kernels/quantized_panel-inl.h"

#if defined(QWENCH_KERNELS_QUANTIZED_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_QUANTIZED_ROW_INL_H_
#undef QWENCH_KERNELS_QUANTIZED_ROW_INL_H_
#else
#define QWENCH_KERNELS_QUANTIZED_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Exact sums of products with 16-bit numbers of x, a lane for each row of the piece.
struct ExactSum {
  // Written out: a constructor that the compiler makes is not compiled for the instruction set.
  HWY_INLINE ExactSum() : sum(hn::Zero(DG())), more(hn::Zero(DG())) {}
  VG sum;
  VG more;  // used where products are added to two sums
};
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void AddPairs(Pairs w, const int16_t* x, ExactSum& s) {
  const auto at = [&](int i) { return static_cast<int16_t>(w.v[i]) * x[i]; };
  s.sum = hn::Add(s.sum, hn::Set(DG(), at(0) + at(1)));
}
HWY_INLINE VG Total(const ExactSum& s) { return s.sum; }
#else
HWY_INLINE void AddPairs(Pairs w, const int16_t* x, ExactSum& s) {
  const hn::Repartition<int16_t, DG> d16;
  const auto two = hn::Set(DG(), load_unaligned<int32_t>(reinterpret_cast<const uint8_t*>(x)));
  s.sum = AddProducts(DG(), hn::BitCast(d16, w), hn::BitCast(d16, two), s.sum, s.more);
}
HWY_INLINE VG Total(const ExactSum& s) { return hn::RearrangeToOddPlusEven(s.sum, s.more); }
#endif

template <int MR>
HWY_INLINE void AddToRows(Pairs w, const int16_t* const* x, int64_t at, ExactSum (&sums)[MR]) {
  Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) { AddPairs(w, x[r] + at, sums[r]); });
}

// out[h][r] = the sum of a part with row r of x, or of each half of it where the type has scales of halves,
// without kMove.
template <class P, int MR>
HWY_INLINE void PartTimesRows(const uint8_t* part, const int16_t* const* x, int64_t at, VG (*out)[MR]) {
  Pairs vectors[P::kBits];
  Unroll<P::kBits>([&](auto v) HWY_ATTR
                   __attribute__((always_inline)) { vectors[v] = LoadPairs(part + v * kVectorBytes); });
  // One row alone is added up in two sums, as each addition waits for the one before.
  constexpr bool kHalves = P::kScales == 2;
  constexpr bool kTwoSums = kHalves || MR == 1;
  ExactSum sums[2][MR];
  Unroll<16>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
    const Pairs w = P::template Get<p>(vectors);
    constexpr int kSum = kHalves ? p / 8 : kTwoSums ? p % 2 : 0;
    AddToRows(w, x, at + 2 * p, sums[kSum]);
  });
  Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    out[0][r] = Total(sums[0][r]);
    if constexpr (kHalves) {
      out[1][r] = Total(sums[1][r]);
    } else if constexpr (kTwoSums) {
      out[0][r] = hn::Add(out[0][r], Total(sums[1][r]));
    }
  });
}

// A row of x, with kMove times its sum for each part or each half of one.
struct RowOfX {
  const int16_t* values;
  const float* scales;
  const float* sums;  // of parts or halves
  const int32_t* moves;
};

// sums[r][row] = x[r] . row for the 8 rows of a panel, without bias.
template <class P, int MR>
HWY_INLINE void PanelTimesRows(const uint8_t* panel, const PanelGeometry<P>& g, const RowOfX* x, int64_t cols,
                               float (*sums)[kPanelRows]) {
  const int16_t* values[MR];
  for (int r = 0; r < MR; ++r) values[r] = x[r].values;
  ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
    HWY_ALIGN float scales[P::kParts * P::kScales * kPanelRows];
    HWY_ALIGN float mins[P::kMins ? P::kParts * P::kScales * kPanelRows : 1];
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
        VG exact[P::kScales][MR];
        PartTimesRows<P, MR>(part, values, block * 32, exact);
        Unroll<P::kScales * MR>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
          constexpr int h = n / MR;
          constexpr int r = n % MR;
          const int64_t s = (i * P::kScales + h) * kPanelRows + row;
          const int64_t share = block * P::kScales + h;
          VG sum = exact[h][r];
          if constexpr (P::kMove != 0) sum = hn::Add(sum, hn::Set(DG(), x[r].moves[share]));
          acc[r] =
              Chain(DGF(), sum, hn::LoadU(DGF(), scales + s), hn::Set(DGF(), x[r].scales[block]), acc[r]);
          if constexpr (P::kMins) {
            acc[r] = hn::MulAdd(hn::LoadU(DGF(), mins + s), hn::Set(DGF(), x[r].sums[share]), acc[r]);
          }
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
