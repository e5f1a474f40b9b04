// Integer dot products of quantized weights, straight from their own layout, with one QuantizedRow, once per
// instruction set. The chain of roundings is the same as with many rows (quantized_tile-inl.h).

#include "kernels/quantized_products-inl.h"

#if defined(QWENCH_KERNELS_QUANTIZED_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_QUANTIZED_ROW_INL_H_
#undef QWENCH_KERNELS_QUANTIZED_ROW_INL_H_
#else
#define QWENCH_KERNELS_QUANTIZED_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Columns side by side: a lane each.
using DG = hn::CappedTag<int32_t, 8>;
using DGF = hn::Rebind<float, DG>;
using VG = hn::Vec<DG>;
using VGF = hn::Vec<DGF>;
constexpr int kGroup = static_cast<int>(hn::MaxLanes(DG()));
#undef QWENCH_GROUP_OF_8
#define QWENCH_GROUP_OF_8 (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)
static_assert(QWENCH_GROUP_OF_8 == (kGroup == 8));

constexpr int kSpanParts = 8;  // of 32: one block of the types of 256

// ---------------------------------------------------------------- sums of a block

#if QWENCH_GROUP_OF_8
using D16 = hn::FixedTag<int16_t, 16>;
using V16 = hn::Vec<D16>;
HWY_INLINE VG PairProducts(V16 a, V16 b) { return VG{_mm256_madd_epi16(a.raw, b.raw)}; }
#endif

// The products of 16 quants with 16 numbers of x: sums in some order, one lane or several.
HWY_INLINE VG Products(Bytes quants, const int16_t* x) {
#if HWY_TARGET == HWY_SCALAR
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += static_cast<int8_t>(quants.v[i]) * x[i];
  return hn::Set(DG(), sum);
#else
  const hn::FixedTag<int8_t, 16> d8;
  const auto q = hn::BitCast(d8, quants);
#if QWENCH_GROUP_OF_8
  return PairProducts(hn::PromoteTo(D16(), q), hn::LoadU(D16(), x));
#else
  const hn::Repartition<int16_t, DG> d16;
  const hn::Half<decltype(d8)> half;
  VG sum1 = hn::Zero(DG());
  VG sum = hn::Zero(DG());
  sum = AddProducts(DG(), hn::PromoteTo(d16, hn::LowerHalf(half, q)), hn::LoadU(d16, x), sum, sum1);
  sum = AddProducts(DG(), hn::PromoteTo(d16, hn::UpperHalf(half, q)), hn::LoadU(d16, x + 8), sum, sum1);
  return hn::Add(sum, sum1);
#endif
#endif
}

#if HWY_TARGET != HWY_SCALAR
// In each 128-bit block: lane i is the sum of the block's lanes of the i-th vector.
HWY_INLINE VG SumBlocks(VG a, VG b, VG c, VG e) {
  const DG d;
  const hn::Repartition<int64_t, DG> d64;
  const auto ab = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab, ce)),
                 hn::BitCast(d, hn::InterleaveUpper(d64, ab, ce)));
}
#endif

// Lane j: the sum of the lanes of sums[j].
HWY_INLINE VG SumOfEach(const VG* sums) {
#if HWY_TARGET == HWY_SCALAR
  return sums[0];
#elif QWENCH_GROUP_OF_8
  const VG first = SumBlocks(sums[0], sums[1], sums[2], sums[3]);
  const VG second = SumBlocks(sums[4], sums[5], sums[6], sums[7]);
  return hn::Add(hn::ConcatLowerLower(DG(), second, first), hn::ConcatUpperUpper(DG(), second, first));
#else
  return SumBlocks(sums[0], sums[1], sums[2], sums[3]);
#endif
}

// out[h] = for each column the sum of a part, or of each half of it where the type has scales of halves.
template <class Q>
HWY_INLINE void SumsOfPart(const uint8_t* const* w, int64_t offset, int part, const int16_t* x, VG* out) {
  VG low[kGroup];
  VG high[kGroup];
  for (int j = 0; j < kGroup; ++j) {
    const Quants q = Q::Part(w[j] + offset, part);
    low[j] = Products(q.low, x);
    high[j] = Products(q.high, x + 16);
    if constexpr (Q::kScales == 1) low[j] = hn::Add(low[j], high[j]);
  }
  out[0] = SumOfEach(low);
  if constexpr (Q::kScales == 2) out[1] = SumOfEach(high);
}

#if QWENCH_GROUP_OF_8
// x with the numbers of each half of a block in the order of the 16-bit lanes that nibbles are taken from:
// those at even places, then those at odd ones.
HWY_INLINE void SplitEvenOdd(const int16_t* x, int64_t n, int16_t* split) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  for (int64_t k = 0; k < n; k += 16) {
    const auto a = hn::BitCast(d32, hn::LoadU(d16, x + k));
    const auto b = hn::BitCast(d32, hn::LoadU(d16, x + k + 8));
    const auto even = hn::ReorderDemote2To(d16, hn::ShiftRight<16>(hn::ShiftLeft<16>(a)),
                                           hn::ShiftRight<16>(hn::ShiftLeft<16>(b)));
    const auto odd = hn::ReorderDemote2To(d16, hn::ShiftRight<16>(a), hn::ShiftRight<16>(b));
    hn::StoreU(even, d16, split + k);
    hn::StoreU(odd, d16, split + k + 8);
  }
}

// Sums of unsigned nibbles. A vector holds 16 bytes of a column and of that four further, as 16-bit lanes: no
// nibble need be widened.
template <class Q>
HWY_INLINE VG NibbleSums(const uint8_t* const* w, int64_t offset, int part, const int16_t* split) {
  const hn::FixedTag<int16_t, 8> half;
  const hn::FixedTag<uint16_t, 16> du;
  const hn::Repartition<uint8_t, decltype(du)> d8;
  const auto x0 = hn::LoadDup128(D16(), split);
  const auto x1 = hn::LoadDup128(D16(), split + 8);
  const auto x2 = hn::LoadDup128(D16(), split + 16);
  const auto x3 = hn::LoadDup128(D16(), split + 24);
  (void)half;
  const auto mask = hn::Set(du, 15);
  const D16 d;
  VG sums[4];
  for (int j = 0; j < 4; ++j) {
    const auto load = [&](int64_t at) HWY_ATTR __attribute__((always_inline)) {
      return hn::BitCast(
          du, hn::Combine(d8, LoadBytes16(w[j + 4] + offset + at), LoadBytes16(w[j] + offset + at)));
    };
    if constexpr (Q::kSize == 32) {  // 16 bytes hold the first half's quants and, higher up, the second's
      const auto v = load(Q::kNibbles);
      const VG a = hn::Add(PairProducts(hn::BitCast(d, hn::And(v, mask)), x0),
                           PairProducts(hn::BitCast(d, hn::And(hn::ShiftRight<8>(v), mask)), x1));
      const VG b = hn::Add(PairProducts(hn::BitCast(d, hn::And(hn::ShiftRight<4>(v), mask)), x2),
                           PairProducts(hn::BitCast(d, hn::ShiftRight<12>(v)), x3));
      sums[j] = hn::Add(a, b);
    } else {  // 32 bytes hold one part's quants and, higher up, the next one's
      const int64_t at = Q::kNibbles + part / 2 * 32;
      auto v = load(at);
      auto u = load(at + 16);
      if (part % 2 == 1) {
        v = hn::ShiftRight<4>(v);
        u = hn::ShiftRight<4>(u);
      }
      const VG a = hn::Add(PairProducts(hn::BitCast(d, hn::And(v, mask)), x0),
                           PairProducts(hn::BitCast(d, hn::And(hn::ShiftRight<8>(v), mask)), x1));
      const VG b = hn::Add(PairProducts(hn::BitCast(d, hn::And(u, mask)), x2),
                           PairProducts(hn::BitCast(d, hn::And(hn::ShiftRight<8>(u), mask)), x3));
      sums[j] = hn::Add(a, b);
    }
  }
  return SumBlocks(sums[0], sums[1], sums[2], sums[3]);
}
#endif

// ---------------------------------------------------------------- scales

// What kGroup columns' blocks share in a span. It is read one span before it is used, as what was just stored
// cannot be loaded in other widths at once.
template <class Q>
struct FloatScales {
  static constexpr int kRows = kSpanParts * Q::kScales;
  HWY_ALIGN float scales[kRows * kGroup];
  HWY_ALIGN float mins[Q::kMins ? kRows * kGroup : 1];

  HWY_INLINE void read(const uint8_t* const* w, int64_t offset, int parts) {
    constexpr int kPerBlock = static_cast<int>(Q::kSize) / 32;
    for (int j = 0; j < kGroup; ++j) {
      const uint8_t* block = w[j] + offset;
      for (int p = 0; p < parts; p += kPerBlock, block += Q::kBytes) {
        const int at = p * Q::kScales * kGroup + j;
        Q::Scales(block, scales + at, Q::kMins ? mins + at : nullptr, kGroup);
      }
    }
  }
  HWY_INLINE VGF scale(int i) const { return hn::Load(DGF(), scales + i * kGroup); }
  HWY_INLINE VGF min(int i) const { return hn::Load(DGF(), mins + i * kGroup); }
};

#if QWENCH_GROUP_OF_8
HWY_INLINE VGF FromHalves(const uint16_t* halves) {
  const hn::Rebind<hwy::float16_t, DGF> d;
  return hn::PromoteTo(DGF(), hn::Load(d, reinterpret_cast<const hwy::float16_t*>(halves)));
}

// Types of 32 whose blocks begin with a scale in f16, and a minimum in f16.
template <class Q>
struct HalfScales {
  HWY_ALIGN uint16_t scales[kSpanParts * kGroup];
  HWY_ALIGN uint16_t mins[Q::kMins ? kSpanParts * kGroup : 1];

  HWY_INLINE void read(const uint8_t* const* w, int64_t offset, int parts) {
    for (int j = 0; j < kGroup; ++j) {
      const uint8_t* block = w[j] + offset;
      for (int p = 0; p < parts; ++p, block += Q::kBytes) {
        std::memcpy(scales + p * kGroup + j, block, 2);
        if constexpr (Q::kMins) std::memcpy(mins + p * kGroup + j, block + 2, 2);
      }
    }
  }
  HWY_INLINE VGF scale(int i) const { return FromHalves(scales + i * kGroup); }
  HWY_INLINE VGF min(int i) const { return FromHalves(mins + i * kGroup); }
};

// Types of 256 with 8 scales and 8 minima of 6 bits, and an f16 for all of each.
template <class Q>
struct SixBitScales {
  HWY_ALIGN uint8_t scales[8 * kGroup];  // [column, part]
  HWY_ALIGN uint8_t mins[8 * kGroup];
  HWY_ALIGN uint16_t scale_of_all[kGroup];
  HWY_ALIGN uint16_t min_of_all[kGroup];

  HWY_INLINE void read(const uint8_t* const* w, int64_t offset, int /*parts*/) {
    constexpr uint32_t k6 = 0x3F3F3F3FU;
    constexpr uint32_t k4 = 0x0F0F0F0FU;
    constexpr uint32_t k2 = 0x03030303U;
    for (int j = 0; j < kGroup; ++j) {
      const uint8_t* b = w[j] + offset;
      const auto s = load_unaligned<uint32_t>(b + 4);
      const auto m = load_unaligned<uint32_t>(b + 8);
      const auto rest = load_unaligned<uint32_t>(b + 12);
      const uint32_t high_s = (rest & k4) | ((s >> 6 & k2) << 4);
      const uint32_t high_m = (rest >> 4 & k4) | ((m >> 6 & k2) << 4);
      const uint64_t all_s = (s & k6) | uint64_t{high_s} << 32;
      const uint64_t all_m = (m & k6) | uint64_t{high_m} << 32;
      std::memcpy(scales + j * 8, &all_s, 8);
      std::memcpy(mins + j * 8, &all_m, 8);
      std::memcpy(scale_of_all + j, b, 2);
      std::memcpy(min_of_all + j, b + 2, 2);
    }
  }
  // Byte i of each column's 8, times the column's f16.
  static HWY_INLINE VGF Times(const uint8_t* bytes, int i, VGF of_all) {
    const hn::Repartition<uint64_t, DG> d64;
    const auto* at = reinterpret_cast<const uint64_t*>(bytes);
    const auto shift = i * 8;
    // Bytes of columns 0 2 4 6 and of 1 3 5 7 lie in 64-bit lanes; they become 32-bit lanes 0 to 7.
    const auto first =
        hn::BitCast(hn::Repartition<float, DG>(), hn::ShiftRightSame(hn::Load(d64, at), shift));
    const auto second =
        hn::BitCast(hn::Repartition<float, DG>(), hn::ShiftRightSame(hn::Load(d64, at + 4), shift));
    const auto even = hn::BitCast(DG(), hn::ConcatEven(DGF(), second, first));
    return hn::Mul(hn::ConvertTo(DGF(), hn::And(even, hn::Set(DG(), 0xFF))), of_all);
  }
  HWY_INLINE VGF scale(int i) const { return Times(scales, i, FromHalves(scale_of_all)); }
  HWY_INLINE VGF min(int i) const { return hn::Neg(Times(mins, i, FromHalves(min_of_all))); }
};
#endif

// ---------------------------------------------------------------- one row

// How a type is read.
template <class Q>
struct Reader {
  using Scales = FloatScales<Q>;
  static constexpr bool kNibbles = false;
};
#if QWENCH_GROUP_OF_8
template <class Q, bool kOfNibbles>
struct HalfReader {
  using Scales = HalfScales<Q>;
  static constexpr bool kNibbles = kOfNibbles;
};
template <>
struct Reader<QuantsQ8_0> : HalfReader<QuantsQ8_0, false> {};
template <>
struct Reader<QuantsQ4_0> : HalfReader<QuantsQ4_0, true> {};
template <>
struct Reader<QuantsQ4_1> : HalfReader<QuantsQ4_1, true> {};
template <>
struct Reader<QuantsQ5_0> : HalfReader<QuantsQ5_0, false> {};
template <>
struct Reader<QuantsQ5_1> : HalfReader<QuantsQ5_1, false> {};
template <>
struct Reader<QuantsIq4Nl> : HalfReader<QuantsIq4Nl, false> {};
template <>
struct Reader<QuantsQ4K> {
  using Scales = SixBitScales<QuantsQ4K>;
  static constexpr bool kNibbles = true;
};
template <>
struct Reader<QuantsQ5K> {
  using Scales = SixBitScales<QuantsQ5K>;
  static constexpr bool kNibbles = false;
};
#endif

// One row of x as OneRowGroup wants it: for types of nibbles rearranged, with the sum of each block.
struct RowForNibbles {
  const int16_t* split;
  const int32_t* offsets;  // [blocks]: what is added to the sum, -8 times that of x for q4_0
};

// sums[j] = x · w[j], without bias.
template <class Q>
HWY_INLINE void OneRowGroup(const uint8_t* const* w, int64_t next_group, const QuantizedRows& x,
                            const RowForNibbles& row, int64_t cols, float* sums) {
  constexpr int64_t kPerBlock = Q::kSize / 32;
  constexpr int64_t kSpanBytes = kSpanParts / kPerBlock * Q::kBytes;
  using Scales = typename Reader<Q>::Scales;
  Scales shared[2];
  VGF acc = hn::Zero(DGF());
  const auto parts_from = [&](int64_t k) { return static_cast<int>(std::min<int64_t>(8, (cols - k) / 32)); };
  shared[0].read(w, 0, parts_from(0));
  for (int64_t k = 0, span = 0; k < cols; k += kSpanParts * 32, ++span) {
    const int64_t offset = span * kSpanBytes;
    const int parts = parts_from(k);
    if (k + kSpanParts * 32 < cols) {
      shared[(span + 1) % 2].read(w, offset + kSpanBytes, parts_from(k + kSpanParts * 32));
    }
    for (int j = 0; j < kGroup; ++j) {
      for (int64_t line = 0; line < kSpanBytes; line += 64) hwy::Prefetch(w[j] + offset + next_group + line);
    }
    const Scales& s = shared[span % 2];
    for (int part = 0; part < parts; ++part) {
      const int64_t block = k / 32 + part;
      const int64_t at = offset + part / kPerBlock * Q::kBytes;
      const auto in_block = static_cast<int>(part % kPerBlock);
      VG exact[2];
#if QWENCH_GROUP_OF_8
      if constexpr (Reader<Q>::kNibbles) {
        exact[0] = NibbleSums<Q>(w, at, in_block, row.split + block * 32);
        if constexpr (Q::kOffset != 0) exact[0] = hn::Add(exact[0], hn::Set(DG(), row.offsets[block]));
      } else {
        SumsOfPart<Q>(w, at, in_block, x.values + block * 32, exact);
      }
#else
      (void)row;
      SumsOfPart<Q>(w, at, in_block, x.values + block * 32, exact);
#endif
      const VGF scale_x = hn::Set(DGF(), x.scales[block]);
      for (int h = 0; h < Q::kScales; ++h) {
        const int i = part * Q::kScales + h;
        acc = Chain(DGF(), exact[h], s.scale(i), scale_x, acc);
        if constexpr (Q::kMins) {
          const float sum = Q::kScales == 1 ? x.sums[block] : x.half_sums[2 * block + h];
          acc = hn::MulAdd(s.min(i), hn::Set(DGF(), sum), acc);
        }
      }
    }
  }
  hn::StoreU(acc, DGF(), sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
