// The quants of GGUF's blocks as unsigned bytes, once per instruction set: for each type, Part gives those of
// 32 elements. They share kScales scales: one for all 32 or one for each 16. Layouts as in
// unpack_reference.cpp.

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

// The 16 bytes at p, and the 16 bits there as bytes of 0 or 1.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Bytes LoadBytes16(const uint8_t* p) {
  return EachByte([&](int i) { return p[i]; });
}
HWY_INLINE Bytes OnesAt(const uint8_t* p) {
  return EachByte([&](int i) { return p[i / 8] >> i % 8 & 1; });
}
#else
HWY_INLINE Bytes LoadBytes16(const uint8_t* p) { return hn::LoadU(hn::FixedTag<uint8_t, 16>(), p); }
HWY_INLINE Bytes OnesAt(const uint8_t* p) {
  const hn::FixedTag<uint16_t, 8> d;
  return OnesOfBits(hn::BitCast(hn::FixedTag<uint8_t, 16>(), hn::Set(d, load_unaligned<uint16_t>(p))));
}
#endif

// The quants of a part.
struct Quants {
  Bytes low;   // elements 0 to 15
  Bytes high;  // 16 to 31
};

// The quants are 128 more than the stored bytes.
struct QuantsQ8_0 : BlockQ8_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    (void)part;
    return {Plus(LoadBytes16(b + 2), 128), Plus(LoadBytes16(b + 18), 128)};
  }
};

struct QuantsQ4_0 : BlockQ4_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    (void)part;
    const auto both = LoadBytes16(b + 2);
    return {BitField<4>(both, 0), BitField<4>(both, 4)};
  }
};

struct QuantsQ4_1 : BlockQ4_1 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    (void)part;
    const auto both = LoadBytes16(b + 4);
    return {BitField<4>(both, 0), BitField<4>(both, 4)};
  }
};

struct QuantsQ5_0 : BlockQ5_0 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    (void)part;
    const auto both = LoadBytes16(b + 6);
    return {OrShifted<4>(BitField<4>(both, 0), OnesAt(b + 2)),
            OrShifted<4>(BitField<4>(both, 4), OnesAt(b + 4))};
  }
};

struct QuantsQ5_1 : BlockQ5_1 {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    (void)part;
    const auto both = LoadBytes16(b + 8);
    return {OrShifted<4>(BitField<4>(both, 0), OnesAt(b + 4)),
            OrShifted<4>(BitField<4>(both, 4), OnesAt(b + 6))};
  }
};

// The quants are indices of kIq4NlValues.
struct QuantsIq4Nl : BlockIq4Nl {
  static constexpr int kScales = 1;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) { return QuantsQ4_0::Part(b, part); }
};

struct QuantsQ2K : BlockQ2K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = true;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const int at = 16 + part / 4 * 32;
    const int shift = part % 4 * 2;
    return {BitField<2>(LoadBytes16(b + at), shift), BitField<2>(LoadBytes16(b + at + 16), shift)};
  }
};

struct QuantsQ3K : BlockQ3K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const int at = 32 + part / 4 * 32;
    const int shift = part % 4 * 2;
    return {
        OrShifted<2>(BitField<2>(LoadBytes16(b + at), shift), BitField<1>(LoadBytes16(b), part)),
        OrShifted<2>(BitField<2>(LoadBytes16(b + at + 16), shift), BitField<1>(LoadBytes16(b + 16), part))};
  }
};

struct QuantsQ4K : BlockQ4K {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const int at = 16 + part / 2 * 32;
    const int shift = part % 2 * 4;
    return {BitField<4>(LoadBytes16(b + at), shift), BitField<4>(LoadBytes16(b + at + 16), shift)};
  }
};

struct QuantsQ5K : BlockQ5K {
  static constexpr int kScales = 1;
  static constexpr bool kMins = true;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const int at = 48 + part / 2 * 32;
    const int shift = part % 2 * 4;
    return {
        OrShifted<4>(BitField<4>(LoadBytes16(b + at), shift), BitField<1>(LoadBytes16(b + 16), part)),
        OrShifted<4>(BitField<4>(LoadBytes16(b + at + 16), shift), BitField<1>(LoadBytes16(b + 32), part))};
  }
};

struct QuantsQ6K : BlockQ6K {
  static constexpr int kScales = 2;
  static constexpr bool kMins = false;
  static HWY_INLINE Quants Part(const uint8_t* b, int part) {
    const int low = part / 4 * 64 + part % 2 * 32;
    const int high = 128 + part / 4 * 32;
    const int low_shift = part % 4 / 2 * 4;
    const int high_shift = part % 4 * 2;
    return {OrShifted<4>(BitField<4>(LoadBytes16(b + low), low_shift),
                         BitField<2>(LoadBytes16(b + high), high_shift)),
            OrShifted<4>(BitField<4>(LoadBytes16(b + low + 16), low_shift),
                         BitField<2>(LoadBytes16(b + high + 16), high_shift))};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
