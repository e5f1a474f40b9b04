// Quantized blocks as whole numbers and scales, once per instruction set. An element is (quant + kOffset) *
// scale, or that + min. For each type, Part gives the quants of 32 elements as bytes (signed where kSigned),
// and Scales what they share: kScales scales in each part, one for all 32 or one for each 16. Layouts as in
// unpack_reference.cpp.
//
// Part reads from a source, so that it serves several widths: source.load(at) is 16 bytes from the block's
// byte `at` on, source.ones(at) the 16 bits there as bytes of 0 or 1, for one column or for two side by side.

#include "kernels/blocks-inl.h"

#if defined(QWENCH_KERNELS_QUANTIZED_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_QUANTIZED_BLOCKS_INL_H_
#undef QWENCH_KERNELS_QUANTIZED_BLOCKS_INL_H_
#else
#define QWENCH_KERNELS_QUANTIZED_BLOCKS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// 16 bytes.
#if HWY_TARGET == HWY_SCALAR
struct Bytes {
  uint8_t v[16];
};
template <class F>
HWY_INLINE Bytes EachByte(F&& f) {
  Bytes out;
  for (int i = 0; i < 16; ++i) out.v[i] = static_cast<uint8_t>(f(i));
  return out;
}
template <int Bits>
HWY_INLINE Bytes BitField(Bytes b, int shift) {
  return EachByte([&](int i) { return b.v[i] >> shift & ((1 << Bits) - 1); });
}
template <int Shift>
HWY_INLINE Bytes OrShifted(Bytes low, Bytes high) {
  return EachByte([&](int i) { return low.v[i] | high.v[i] << Shift; });
}
HWY_INLINE Bytes Plus(Bytes b, int offset) {
  return EachByte([&](int i) { return b.v[i] + offset; });
}
HWY_INLINE Bytes LookUp16(const int8_t* table, Bytes b) {
  return EachByte([&](int i) { return table[b.v[i]]; });
}
#else
using Bytes = hn::Vec<hn::FixedTag<uint8_t, 16> >;
// Bits [shift, shift + Bits) of each byte.
template <int Bits, class V>
HWY_INLINE V BitField(V b, int shift) {
  const hn::DFromV<V> d;
  const hn::Repartition<uint16_t, decltype(d)> d16;
  const auto shifted = hn::BitCast(d, hn::ShiftRightSame(hn::BitCast(d16, b), shift));
  return hn::And(shifted, hn::Set(d, (1 << Bits) - 1));
}
// low | high << Shift; no bit of `high` may leave its byte.
template <int Shift, class V>
HWY_INLINE V OrShifted(V low, V high) {
  const hn::DFromV<V> d;
  const hn::Repartition<uint16_t, decltype(d)> d16;
  return hn::Or(low, hn::BitCast(d, hn::ShiftLeft<Shift>(hn::BitCast(d16, high))));
}
template <class V>
HWY_INLINE V Plus(V b, int offset) {
  return hn::Add(b, hn::Set(hn::DFromV<V>(), static_cast<uint8_t>(offset)));
}
// table[b] of 16 entries.
template <class V>
HWY_INLINE V LookUp16(const int8_t* table, V b) {
  const hn::Repartition<int8_t, hn::DFromV<V> > d;
  return hn::BitCast(hn::DFromV<V>(), hn::TableLookupBytes(hn::LoadDup128(d, table), hn::BitCast(d, b)));
}
// `bits` holds 16 bits in each of its 16-bit lanes; 1 or 0 for each of them.
template <class V>
HWY_INLINE V OnesOfBits(V bits) {
  alignas(16) static constexpr uint8_t kByteOf[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr uint8_t kBitOf[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                     1, 2, 4, 8, 16, 32, 64, 128};
  const hn::DFromV<V> d;
  const auto set =
      hn::TestBit(hn::TableLookupBytes(bits, hn::LoadDup128(d, kByteOf)), hn::LoadDup128(d, kBitOf));
  return hn::IfThenElseZero(set, hn::Set(d, 1));
}
#endif

// A block of one column.
struct OneColumn {
  const uint8_t* block;
#if HWY_TARGET == HWY_SCALAR
  HWY_INLINE Bytes load(int64_t at) const {
    return EachByte([&](int i) { return block[at + i]; });
  }
  HWY_INLINE Bytes ones(int64_t at) const {
    return EachByte([&](int i) { return block[at + i / 8] >> i % 8 & 1; });
  }
#else
  HWY_INLINE Bytes load(int64_t at) const { return hn::LoadU(hn::FixedTag<uint8_t, 16>(), block + at); }
  HWY_INLINE Bytes ones(int64_t at) const {
    const hn::FixedTag<uint16_t, 8> d;
    return OnesOfBits(
        hn::BitCast(hn::FixedTag<uint8_t, 16>(), hn::Set(d, load_unaligned<uint16_t>(block + at))));
  }
#endif
};

// The quants of a part.
template <class V>
struct Quants {
  V low;   // elements 0 to 15
  V high;  // 16 to 31
};
template <class Source>
using QuantsFrom = Quants<decltype(std::declval<Source>().load(0))>;

struct QuantsQ8_0 : BlockQ8_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = true;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    (void)part;
    return {from.load(2), from.load(18)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* /*mins*/, int64_t /*stride*/) {
    *scales = HalfAt(b);
  }
};

struct QuantsQ4_0 : BlockQ4_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static constexpr int kOffset = -8;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    (void)part;
    const auto both = from.load(2);
    return {BitField<4>(both, 0), BitField<4>(both, 4)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ8_0::Scales(b, scales, mins, stride);
  }
};

struct QuantsQ4_1 : BlockQ4_1 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    (void)part;
    const auto both = from.load(4);
    return {BitField<4>(both, 0), BitField<4>(both, 4)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t /*stride*/) {
    *scales = HalfAt(b);
    *mins = HalfAt(b + 2);
  }
};

struct QuantsQ5_0 : BlockQ5_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static constexpr int kOffset = -16;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    (void)part;
    const auto both = from.load(6);
    return {OrShifted<4>(BitField<4>(both, 0), from.ones(2)),
            OrShifted<4>(BitField<4>(both, 4), from.ones(4))};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ8_0::Scales(b, scales, mins, stride);
  }
};

struct QuantsQ5_1 : BlockQ5_1 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    (void)part;
    const auto both = from.load(8);
    return {OrShifted<4>(BitField<4>(both, 0), from.ones(4)),
            OrShifted<4>(BitField<4>(both, 4), from.ones(6))};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ4_1::Scales(b, scales, mins, stride);
  }
};

struct QuantsIq4Nl : BlockIq4Nl {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = true;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    (void)part;
    const auto both = from.load(2);
    return {LookUp16(kIq4NlValues, BitField<4>(both, 0)), LookUp16(kIq4NlValues, BitField<4>(both, 4))};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ8_0::Scales(b, scales, mins, stride);
  }
};

// to[i * stride] = from[i], negated where `Sign` is -1.
template <int N, int Sign = 1>
HWY_INLINE void Spread(const float* from, float* to, int64_t stride) {
  for (int i = 0; i < N; ++i) to[i * stride] = Sign < 0 ? -from[i] : from[i];
}

struct QuantsQ2K : BlockQ2K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = true;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    const int at = 16 + part / 4 * 32;
    const int shift = part % 4 * 2;
    return {BitField<2>(from.load(at), shift), BitField<2>(from.load(at + 16), shift)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    const Header h(b);
    Spread<16>(h.scale, scales, stride);
    Spread<16, -1>(h.min, mins, stride);
  }
};

struct QuantsQ3K : BlockQ3K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = false;
  static constexpr int kOffset = -4;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    const int at = 32 + part / 4 * 32;
    const int shift = part % 4 * 2;
    return {OrShifted<2>(BitField<2>(from.load(at), shift), BitField<1>(from.load(0), part)),
            OrShifted<2>(BitField<2>(from.load(at + 16), shift), BitField<1>(from.load(16), part))};
  }

  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* /*mins*/, int64_t stride) {
    const Header h(b);
    Spread<16>(h.scale, scales, stride);
  }
};

struct QuantsQ4K : BlockQ4K {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    const int at = 16 + part / 2 * 32;
    const int shift = part % 2 * 4;
    return {BitField<4>(from.load(at), shift), BitField<4>(from.load(at + 16), shift)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    const Header h(b);
    Spread<8>(h.scale, scales, stride);
    Spread<8, -1>(h.min, mins, stride);
  }
};

struct QuantsQ5K : BlockQ5K {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    const int at = 48 + part / 2 * 32;
    const int shift = part % 2 * 4;
    return {OrShifted<4>(BitField<4>(from.load(at), shift), BitField<1>(from.load(16), part)),
            OrShifted<4>(BitField<4>(from.load(at + 16), shift), BitField<1>(from.load(32), part))};
  }

  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ4K::Scales(b, scales, mins, stride);
  }
};

struct QuantsQ6K : BlockQ6K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = false;
  static constexpr int kOffset = -32;
  static constexpr bool kSigned = false;
  template <class Source>
  static HWY_INLINE QuantsFrom<Source> Part(const Source& from, int part) {
    const int low = part / 4 * 64 + part % 2 * 32;
    const int high = 128 + part / 4 * 32;
    const int low_shift = part % 4 / 2 * 4;
    const int high_shift = part % 4 * 2;
    return {OrShifted<4>(BitField<4>(from.load(low), low_shift), BitField<2>(from.load(high), high_shift)),
            OrShifted<4>(BitField<4>(from.load(low + 16), low_shift),
                         BitField<2>(from.load(high + 16), high_shift))};
  }

  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* /*mins*/, int64_t stride) {
    const Header h(b);
    Spread<16>(h.scale, scales, stride);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
