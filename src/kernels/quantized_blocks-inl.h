// Quantized blocks as whole numbers and scales, once per instruction set. An element is quant * scale, or
// quant * scale + min, with quants within [-128, 127]. For each type, Part(b, part) gives the quants of 32
// elements, and Scales what they share: kScales scales in each part, one for all 32 or one for each 16.
// Layouts as in unpack_reference.cpp.

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
HWY_INLINE Bytes LoadBytes16(const uint8_t* p) {
  return EachByte([&](int i) { return p[i]; });
}
template <int Bits>
HWY_INLINE Bytes BitField(Bytes b, int shift) {
  return EachByte([&](int i) { return b.v[i] >> shift & ((1 << Bits) - 1); });
}
template <int Shift>
HWY_INLINE Bytes OrShifted(Bytes low, Bytes high) {
  return EachByte([&](int i) { return low.v[i] | high.v[i] << Shift; });
}
HWY_INLINE Bytes Minus(Bytes b, int offset) {
  return EachByte([&](int i) { return b.v[i] - offset; });
}
HWY_INLINE Bytes LookUp16(const int8_t* table, Bytes b) {
  return EachByte([&](int i) { return table[b.v[i]]; });
}
HWY_INLINE Bytes OnesOfBits(uint32_t bits) {
  return EachByte([&](int i) { return bits >> i & 1U; });
}
#else
using D8 = hn::FixedTag<uint8_t, 16>;
using Bytes = hn::Vec<D8>;
HWY_INLINE Bytes LoadBytes16(const uint8_t* p) { return hn::LoadU(D8(), p); }
// Bits [shift, shift + Bits) of each byte.
template <int Bits>
HWY_INLINE Bytes BitField(Bytes b, int shift) {
  const hn::FixedTag<uint16_t, 8> d16;
  const auto shifted = hn::BitCast(D8(), hn::ShiftRightSame(hn::BitCast(d16, b), shift));
  return hn::And(shifted, hn::Set(D8(), (1 << Bits) - 1));
}
// low | high << Shift; no bit of `high` may leave its byte.
template <int Shift>
HWY_INLINE Bytes OrShifted(Bytes low, Bytes high) {
  const hn::FixedTag<uint16_t, 8> d16;
  return hn::Or(low, hn::BitCast(D8(), hn::ShiftLeft<Shift>(hn::BitCast(d16, high))));
}
HWY_INLINE Bytes Minus(Bytes b, int offset) {
  return hn::Sub(b, hn::Set(D8(), static_cast<uint8_t>(offset)));
}
HWY_INLINE Bytes LookUp16(const int8_t* table, Bytes b) {
  const hn::FixedTag<int8_t, 16> d;
  return hn::BitCast(D8(), hn::TableLookupBytes(hn::LoadU(d, table), hn::BitCast(d, b)));
}
// 1 or 0 for each of the 16 lowest bits.
HWY_INLINE Bytes OnesOfBits(uint32_t bits) {
  alignas(16) static constexpr uint8_t kByteOf[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr uint8_t kBitOf[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                     1, 2, 4, 8, 16, 32, 64, 128};
  const hn::FixedTag<uint16_t, 8> d16;
  const auto all = hn::BitCast(D8(), hn::Set(d16, static_cast<uint16_t>(bits)));
  const auto set = hn::TestBit(hn::TableLookupBytes(all, hn::Load(D8(), kByteOf)), hn::Load(D8(), kBitOf));
  return hn::IfThenElseZero(set, hn::Set(D8(), 1));
}
#endif

// The quants of a part as signed bytes.
struct Quants {
  Bytes low;   // elements 0 to 15
  Bytes high;  // 16 to 31
};

struct QuantsQ8_0 : BlockQ8_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int /*part*/) {
    return {LoadBytes16(b + 2), LoadBytes16(b + 18)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* /*mins*/, int64_t /*stride*/) {
    *scales = HalfAt(b);
  }
};

struct QuantsQ4_0 : BlockQ4_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static constexpr int64_t kNibbles = 2;  // where they begin
  static constexpr int kOffset = -8;      // added to each
  static HWY_INLINE Quants Part(const uint8_t* b, int /*part*/) {
    const Bytes both = LoadBytes16(b + 2);
    return {Minus(BitField<4>(both, 0), 8), Minus(BitField<4>(both, 4), 8)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ8_0::Scales(b, scales, mins, stride);
  }
};

struct QuantsQ4_1 : BlockQ4_1 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static constexpr int64_t kNibbles = 4;  // where they begin
  static constexpr int kOffset = 0;       // added to each
  static HWY_INLINE Quants Part(const uint8_t* b, int /*part*/) {
    const Bytes both = LoadBytes16(b + 4);
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
  static HWY_INLINE Quants Part(const uint8_t* b, int /*part*/) {
    const auto fifth = load_unaligned<uint32_t>(b + 2);
    const Bytes both = LoadBytes16(b + 6);
    return {Minus(OrShifted<4>(BitField<4>(both, 0), OnesOfBits(fifth)), 16),
            Minus(OrShifted<4>(BitField<4>(both, 4), OnesOfBits(fifth >> 16)), 16)};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ8_0::Scales(b, scales, mins, stride);
  }
};

struct QuantsQ5_1 : BlockQ5_1 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static HWY_INLINE Quants Part(const uint8_t* b, int /*part*/) {
    const auto fifth = load_unaligned<uint32_t>(b + 4);
    const Bytes both = LoadBytes16(b + 8);
    return {OrShifted<4>(BitField<4>(both, 0), OnesOfBits(fifth)),
            OrShifted<4>(BitField<4>(both, 4), OnesOfBits(fifth >> 16))};
  }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ4_1::Scales(b, scales, mins, stride);
  }
};

struct QuantsIq4Nl : BlockIq4Nl {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int /*part*/) {
    const Bytes both = LoadBytes16(b + 2);
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
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const uint8_t* quants = b + 16 + part / 4 * 32;
    const int shift = part % 4 * 2;
    return {BitField<2>(LoadBytes16(quants), shift), BitField<2>(LoadBytes16(quants + 16), shift)};
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
  static HWY_INLINE Quants Part(const uint8_t* b, int part) { return {Half(b, part, 0), Half(b, part, 16)}; }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* /*mins*/, int64_t stride) {
    const Header h(b);
    Spread<16>(h.scale, scales, stride);
  }

 private:
  static HWY_INLINE Bytes Half(const uint8_t* b, int part, int first) {
    const Bytes low = BitField<2>(LoadBytes16(b + 32 + part / 4 * 32 + first), part % 4 * 2);
    return Minus(OrShifted<2>(low, BitField<1>(LoadBytes16(b + first), part)), 4);
  }
};

struct QuantsQ4K : BlockQ4K {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static constexpr int64_t kNibbles = 16;  // where they begin
  static constexpr int kOffset = 0;        // added to each
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const uint8_t* quants = b + 16 + part / 2 * 32;
    const int shift = part % 2 * 4;
    return {BitField<4>(LoadBytes16(quants), shift), BitField<4>(LoadBytes16(quants + 16), shift)};
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
  static HWY_INLINE Quants Part(const uint8_t* b, int part) { return {Half(b, part, 0), Half(b, part, 16)}; }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* mins, int64_t stride) {
    QuantsQ4K::Scales(b, scales, mins, stride);
  }

 private:
  static HWY_INLINE Bytes Half(const uint8_t* b, int part, int first) {
    const Bytes low = BitField<4>(LoadBytes16(b + 48 + part / 2 * 32 + first), part % 2 * 4);
    return OrShifted<4>(low, BitField<1>(LoadBytes16(b + 16 + first), part));
  }
};

struct QuantsQ6K : BlockQ6K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) { return {Half(b, part, 0), Half(b, part, 16)}; }
  static HWY_INLINE void Scales(const uint8_t* b, float* scales, float* /*mins*/, int64_t stride) {
    const Header h(b);
    Spread<16>(h.scale, scales, stride);
  }

 private:
  static HWY_INLINE Bytes Half(const uint8_t* b, int part, int first) {
    const uint8_t* lows = b + part / 4 * 64 + part % 2 * 32 + first;
    const uint8_t* highs = b + 128 + part / 4 * 32 + first;
    const Bytes low = BitField<4>(LoadBytes16(lows), part % 4 / 2 * 4);
    return Minus(OrShifted<4>(low, BitField<2>(LoadBytes16(highs), part % 4 * 2)), 32);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
