// Integer dot products of a panel of quantized weights with one QuantizedRow, once per instruction set. The
// chain of roundings is the same as with many rows (quantized_tile-inl.h).

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
  VG sum;
  VG more;  // used where products are added to two sums
};
HWY_INLINE ExactSum NoProducts() { return {hn::Zero(DG()), hn::Zero(DG())}; }
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

// out[h] = the sum of a part, or of each half of it where the type has scales of halves, without kMove.
template <class P>
HWY_INLINE void PartTimesRow(const uint8_t* part, const int16_t* x, VG* out) {
  Pairs vectors[P::kBits];
  Unroll<P::kBits>([&](auto v) HWY_ATTR
                   __attribute__((always_inline)) { vectors[v] = LoadPairs(part + v * kVectorBytes); });
  ExactSum sums[2] = {NoProducts(), NoProducts()};
  Unroll<16>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
    AddPairs(P::template Get<p>(vectors), x + 2 * p, sums[P::kScales == 2 ? p / 8 : p % 2]);
  });
  if constexpr (P::kScales == 2) {
    out[0] = Total(sums[0]);
    out[1] = Total(sums[1]);
  } else {
    out[0] = hn::Add(Total(sums[0]), Total(sums[1]));
  }
}

// sums[row] = x . row for the 8 rows of a panel, without bias. moves: kMove times the sum of x, for each part
// or each half of one.
template <class P>
HWY_INLINE void PanelTimesRow(const uint8_t* panel, const PanelGeometry<P>& g, const QuantizedRows& x,
                              const int32_t* moves, int64_t cols, float* sums) {
  const float* sums_x = P::kScales == 1 ? x.sums : x.half_sums;
  ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
    HWY_ALIGN float scales[P::kParts * P::kScales * kPanelRows];
    HWY_ALIGN float mins[P::kMins ? P::kParts * P::kScales * kPanelRows : 1];
    const uint8_t* part = panel + row * 4;
    const uint8_t* block_scales = panel + g.quants;
    VGF acc = hn::Zero(DGF());
    for (int64_t block = 0; block < cols / 32; block_scales += P::kScaleBytes) {
      P::Scales::Get(block_scales, scales, mins, kPanelRows);
      for (int i = 0; i < P::kParts; ++i, ++block, part += P::kPartBytes) {
        FetchBehind<P>(part);
        VG exact[2];
        PartTimesRow<P>(part, x.values + block * 32, exact);
        const VGF scale_x = hn::Set(DGF(), x.scales[block]);
        Unroll<P::kScales>([&](auto h) HWY_ATTR __attribute__((always_inline)) {
          const int64_t s = (i * P::kScales + h) * kPanelRows + row;
          const int64_t share = block * P::kScales + h;
          if constexpr (P::kMove != 0) exact[h] = hn::Add(exact[h], hn::Set(DG(), moves[share]));
          acc = Chain(DGF(), exact[h], hn::LoadU(DGF(), scales + s), scale_x, acc);
          if constexpr (P::kMins) {
            acc = hn::MulAdd(hn::LoadU(DGF(), mins + s), hn::Set(DGF(), sums_x[share]), acc);
          }
        });
      }
    }
    hn::StoreU(acc, DGF(), sums + row);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
