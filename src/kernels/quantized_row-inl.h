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

#if !QWENCH_GROUP_OF_8
// The products of 16 quants with 16 numbers of x: sums in some order, one lane or several.
HWY_INLINE VG Products(Bytes quants, const int16_t* x) {
#if HWY_TARGET == HWY_SCALAR
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += static_cast<int8_t>(quants.v[i]) * x[i];
  return hn::Set(DG(), sum);
#else
  const hn::FixedTag<int8_t, 16> d8;
  const auto q = hn::BitCast(d8, quants);
  const hn::Repartition<int16_t, DG> d16;
  const hn::Half<decltype(d8)> half;
  VG sum1 = hn::Zero(DG());
  VG sum = hn::Zero(DG());
  sum = AddProducts(DG(), hn::PromoteTo(d16, hn::LowerHalf(half, q)), hn::LoadU(d16, x), sum, sum1);
  sum = AddProducts(DG(), hn::PromoteTo(d16, hn::UpperHalf(half, q)), hn::LoadU(d16, x + 8), sum, sum1);
  return hn::Add(sum, sum1);
#endif
}
#endif

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

// One row of x as SumsOfPart wants it.
struct RowOfX {
  const int16_t* values;
  const int32_t* offsets;  // kOffset times the sum of x, for each part or each half of one
};

#if QWENCH_GROUP_OF_8
using D16 = hn::FixedTag<int16_t, 16>;
using V16 = hn::Vec<D16>;
HWY_INLINE VG PairProducts(V16 a, V16 b) { return VG{_mm256_madd_epi16(a.raw, b.raw)}; }

// Blocks of two columns, each in half a vector.
struct TwoColumns {
  using D = hn::FixedTag<uint8_t, 32>;
  const uint8_t* first;
  const uint8_t* second;
  HWY_INLINE hn::Vec<D> load(int64_t at) const {
    const hn::Half<D> half;
    return hn::Combine(D(), hn::LoadU(half, second + at), hn::LoadU(half, first + at));
  }
  HWY_INLINE hn::Vec<D> ones(int64_t at) const {
    const hn::FixedTag<uint16_t, 8> d;
    const hn::FixedTag<uint16_t, 16> both;
    return OnesOfBits(hn::BitCast(D(), hn::Combine(both, hn::Set(d, load_unaligned<uint16_t>(second + at)),
                                                   hn::Set(d, load_unaligned<uint16_t>(first + at)))));
  }
};

// x with each 16 numbers in the order that bytes become 16-bit lanes in: those at even places, then those at
// odd ones.
HWY_INLINE void SplitEvenOdd(const int16_t* x, int64_t n, int16_t* split) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  for (int64_t k = 0; k < n; k += 16) {
    const auto a = hn::BitCast(d32, hn::LoadU(d16, x + k));
    const auto b = hn::BitCast(d32, hn::LoadU(d16, x + k + 8));
    const auto even_a = hn::ShiftRight<16>(hn::ShiftLeft<16>(a));
    const auto even_b = hn::ShiftRight<16>(hn::ShiftLeft<16>(b));
    hn::StoreU(hn::ReorderDemote2To(d16, even_a, even_b), d16, split + k);
    hn::StoreU(hn::ReorderDemote2To(d16, hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)), d16, split + k + 8);
  }
}

// The products of 16 quants of two columns with 16 numbers of x.
template <bool kSigned, class V>
HWY_INLINE VG Products(V quants, V16 x_even, V16 x_odd) {
  if constexpr (kSigned) {
    const V16 v = hn::BitCast(D16(), quants);
    return hn::Add(PairProducts(hn::ShiftRight<8>(hn::ShiftLeft<8>(v)), x_even),
                   PairProducts(hn::ShiftRight<8>(v), x_odd));
  } else {
    const hn::FixedTag<uint16_t, 16> du;
    const auto v = hn::BitCast(du, quants);
    return hn::Add(PairProducts(hn::BitCast(D16(), hn::And(v, hn::Set(du, 0xFF))), x_even),
                   PairProducts(hn::BitCast(D16(), hn::ShiftRight<8>(v)), x_odd));
  }
}
#endif

// out[h] = for each column the sum of a part, or of each half of it where the type has scales of halves.
// `block` counts the parts of the row.
template <class Q>
HWY_INLINE void SumsOfPart(const uint8_t* const* w, int64_t offset, int part, const RowOfX& row,
                           int64_t block, VG* out) {
  const int16_t* x = row.values + block * 32;
#if QWENCH_GROUP_OF_8
  const V16 x0 = hn::LoadDup128(D16(), x);
  const V16 x1 = hn::LoadDup128(D16(), x + 8);
  const V16 x2 = hn::LoadDup128(D16(), x + 16);
  const V16 x3 = hn::LoadDup128(D16(), x + 24);
  VG low[4];  // of columns j and j + 4
  VG high[4];
  for (int j = 0; j < 4; ++j) {
    const auto q = Q::Part(TwoColumns{w[j] + offset, w[j + 4] + offset}, part);
    low[j] = Products<Q::kSigned>(q.low, x0, x1);
    high[j] = Products<Q::kSigned>(q.high, x2, x3);
    if constexpr (Q::kScales == 1) low[j] = hn::Add(low[j], high[j]);
  }
  out[0] = SumBlocks(low[0], low[1], low[2], low[3]);
  if constexpr (Q::kScales == 2) out[1] = SumBlocks(high[0], high[1], high[2], high[3]);
  if constexpr (Q::kOffset != 0) {
    for (int h = 0; h < Q::kScales; ++h) {
      out[h] = hn::Add(out[h], hn::Set(DG(), row.offsets[block * Q::kScales + h]));
    }
  }
#else
  VG low[kGroup];
  VG high[kGroup];
  for (int j = 0; j < kGroup; ++j) {
    const auto q = Q::Part(OneColumn{w[j] + offset}, part);
    low[j] = Products(Plus(q.low, Q::kOffset), x);
    high[j] = Products(Plus(q.high, Q::kOffset), x + 16);
    if constexpr (Q::kScales == 1) low[j] = hn::Add(low[j], high[j]);
  }
#if HWY_TARGET == HWY_SCALAR
  out[0] = low[0];
  if constexpr (Q::kScales == 2) out[1] = high[0];
#else
  out[0] = SumBlocks(low[0], low[1], low[2], low[3]);
  if constexpr (Q::kScales == 2) out[1] = SumBlocks(high[0], high[1], high[2], high[3]);
#endif
#endif
}

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
// The lower 16 bits of each lane, with none above.
HWY_INLINE VGF FromHalves(VG halves) {
  const hn::Rebind<uint16_t, DG> d16;
  const hn::Rebind<hwy::float16_t, DGF> d;
  return hn::PromoteTo(DGF(), hn::BitCast(d, hn::DemoteTo(d16, halves)));
}

// Types of 32 whose blocks begin with a scale in f16, and a minimum in f16.
template <class Q>
struct HalfScales {
  HWY_ALIGN uint32_t
      shared[kSpanParts * kGroup];  // [part, column]: the scale, above it the minimum or others

  HWY_INLINE void read(const uint8_t* const* w, int64_t offset, int parts) {
    for (int j = 0; j < kGroup; ++j) {
      const uint8_t* block = w[j] + offset;
      if (parts == kSpanParts) {
        Unroll<kSpanParts>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
          shared[p * kGroup + j] = load_unaligned<uint32_t>(block + p * Q::kBytes);
        });
      } else {
        for (int p = 0; p < parts; ++p)
          shared[p * kGroup + j] = load_unaligned<uint32_t>(block + p * Q::kBytes);
      }
    }
  }
  HWY_INLINE VGF scale(int i) const { return FromHalves(hn::And(both(i), hn::Set(DG(), 0xFFFF))); }
  HWY_INLINE VGF min(int i) const {
    const hn::Rebind<uint32_t, DG> du;
    return FromHalves(hn::BitCast(DG(), hn::ShiftRight<16>(hn::BitCast(du, both(i)))));
  }

 private:
  HWY_INLINE VG both(int i) const {
    return hn::Load(DG(), reinterpret_cast<const int32_t*>(shared + i * kGroup));
  }
};

// Byte i of each column's 8 in the lowest bits of a lane, with others above.
HWY_INLINE VG BytesAt(const uint8_t* bytes, int i) {
  const hn::Repartition<uint64_t, DG> d64;
  const auto* at = reinterpret_cast<const uint64_t*>(bytes);
  const auto first = hn::BitCast(DGF(), hn::ShiftRightSame(hn::Load(d64, at), i * 8));
  const auto second = hn::BitCast(DGF(), hn::ShiftRightSame(hn::Load(d64, at + 4), i * 8));
  return hn::BitCast(DG(), hn::ConcatEven(DGF(), second, first));
}

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
  static HWY_INLINE VGF Times(VG bytes, const uint16_t* of_all) {
    return hn::Mul(hn::ConvertTo(DGF(), hn::And(bytes, hn::Set(DG(), 0xFF))), FromHalves(of_all));
  }
  HWY_INLINE VGF scale(int i) const { return Times(BytesAt(scales, i), scale_of_all); }
  HWY_INLINE VGF min(int i) const { return hn::Neg(Times(BytesAt(mins, i), min_of_all)); }
};

// Types of 256 with 16 scales of 8 bits, and an f16 for all of them (q6_k).
struct ByteScales {
  HWY_ALIGN uint8_t scales[2][8 * kGroup];  // the first 8 and the last 8: [column, i]
  HWY_ALIGN uint16_t scale_of_all[kGroup];

  HWY_INLINE void read(const uint8_t* const* w, int64_t offset, int /*parts*/) {
    for (int j = 0; j < kGroup; ++j) {
      const uint8_t* b = w[j] + offset;
      std::memcpy(scales[0] + j * 8, b + 192, 8);
      std::memcpy(scales[1] + j * 8, b + 200, 8);
      std::memcpy(scale_of_all + j, b + 208, 2);
    }
  }
  HWY_INLINE VGF scale(int i) const {
    const VG bytes = hn::ShiftRight<24>(hn::ShiftLeft<24>(BytesAt(scales[i / 8], i % 8)));
    return hn::Mul(hn::ConvertTo(DGF(), bytes), FromHalves(scale_of_all));
  }
};
#endif

// ---------------------------------------------------------------- one row

// How a type's scales are read.
template <class Q>
struct ScaleReader {
  using Type = FloatScales<Q>;
};
#if QWENCH_GROUP_OF_8
template <>
struct ScaleReader<QuantsQ8_0> {
  using Type = HalfScales<QuantsQ8_0>;
};
template <>
struct ScaleReader<QuantsQ4_0> {
  using Type = HalfScales<QuantsQ4_0>;
};
template <>
struct ScaleReader<QuantsQ4_1> {
  using Type = HalfScales<QuantsQ4_1>;
};
template <>
struct ScaleReader<QuantsQ5_0> {
  using Type = HalfScales<QuantsQ5_0>;
};
template <>
struct ScaleReader<QuantsQ5_1> {
  using Type = HalfScales<QuantsQ5_1>;
};
template <>
struct ScaleReader<QuantsIq4Nl> {
  using Type = HalfScales<QuantsIq4Nl>;
};
template <>
struct ScaleReader<QuantsQ4K> {
  using Type = SixBitScales<QuantsQ4K>;
};
template <>
struct ScaleReader<QuantsQ5K> {
  using Type = SixBitScales<QuantsQ5K>;
};
template <>
struct ScaleReader<QuantsQ6K> {
  using Type = ByteScales;
};
#endif

// sums[j] = x · w[j], without bias.
template <class Q>
HWY_INLINE void OneRowGroup(const uint8_t* const* w, int64_t next_group, const QuantizedRows& x,
                            const RowOfX& row, int64_t cols, float* sums) {
  constexpr int64_t kPerBlock = Q::kSize / 32;
  constexpr int64_t kSpanBytes = kSpanParts / kPerBlock * Q::kBytes;
  using Scales = typename ScaleReader<Q>::Type;
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
      SumsOfPart<Q>(w, at, in_block, row, block, exact);
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
