// Quantized blocks as vectors of f32, once per instruction set. Each type's Decode calls sink(i, v) with the
// values of elements [i, i + kLanes) of one block, i ascending. Layouts as in unpack_reference.cpp. Every
// product is exact in f32, so that a fused multiply-add gives the same bits as a multiplication and an
// addition.

#include "kernels/simd-inl.h"

#if defined(QWENCH_KERNELS_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_BLOCKS_INL_H_
#undef QWENCH_KERNELS_BLOCKS_INL_H_
#else
#define QWENCH_KERNELS_BLOCKS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

HWY_INLINE float HalfAt(const uint8_t* p) { return f16_to_f32(load_unaligned<uint16_t>(p)); }
HWY_INLINE VI Low4(const uint8_t* p) { return hn::And(LoadBytes(p), hn::Set(DI(), 15)); }
HWY_INLINE VI High4(const uint8_t* p) { return hn::ShiftRight<4>(LoadBytes(p)); }

// Bits [first, first + kLanes) of `bits`, each as 16 or 0: the fifth bit of the 5-bit types.
HWY_INLINE VI FifthBits(uint32_t bits, size_t first) {
  const VI one = hn::Shl(hn::Set(DI(), 1), hn::Iota(DI(), 0));
  const VI shifted = hn::Set(DI(), static_cast<int32_t>(bits >> first & 0xFFFFU));
  return hn::IfThenElseZero(hn::TestBit(shifted, one), hn::Set(DI(), 16));
}

struct BlockQ8_0 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 34;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const VF d = hn::Set(DF(), HalfAt(b));
    for (size_t i = 0; i < 32; i += kLanes) sink(i, hn::Mul(ToFloat(LoadSignedBytes(b + 2 + i)), d));
  }
};

struct BlockQ4_0 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 18;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const VF d = hn::Set(DF(), HalfAt(b));
    const VI eight = hn::Set(DI(), 8);
    for (size_t i = 0; i < 16; i += kLanes) sink(i, hn::Mul(ToFloat(hn::Sub(Low4(b + 2 + i), eight)), d));
    for (size_t i = 0; i < 16; i += kLanes)
      sink(16 + i, hn::Mul(ToFloat(hn::Sub(High4(b + 2 + i), eight)), d));
  }
};

struct BlockQ4_1 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 20;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const VF d = hn::Set(DF(), HalfAt(b));
    const VF m = hn::Set(DF(), HalfAt(b + 2));
    for (size_t i = 0; i < 16; i += kLanes) sink(i, hn::MulAdd(ToFloat(Low4(b + 4 + i)), d, m));
    for (size_t i = 0; i < 16; i += kLanes) sink(16 + i, hn::MulAdd(ToFloat(High4(b + 4 + i)), d, m));
  }
};

struct BlockQ5_0 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 22;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const VF d = hn::Set(DF(), HalfAt(b));
    const auto high = load_unaligned<uint32_t>(b + 2);
    const VI offset = hn::Set(DI(), 16);
    for (size_t i = 0; i < 32; i += kLanes) {
      const VI low = i < 16 ? Low4(b + 6 + i) : High4(b + 6 + i - 16);
      sink(i, hn::Mul(ToFloat(hn::Sub(hn::Or(low, FifthBits(high, i)), offset)), d));
    }
  }
};

struct BlockQ5_1 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 24;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const VF d = hn::Set(DF(), HalfAt(b));
    const VF m = hn::Set(DF(), HalfAt(b + 2));
    const auto high = load_unaligned<uint32_t>(b + 4);
    for (size_t i = 0; i < 32; i += kLanes) {
      const VI low = i < 16 ? Low4(b + 8 + i) : High4(b + 8 + i - 16);
      sink(i, hn::MulAdd(ToFloat(hn::Or(low, FifthBits(high, i))), d, m));
    }
  }
};

struct BlockIq4Nl {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 18;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    alignas(16) static constexpr int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                       1,    13,   25,  38,  53,  69,  89,  113};
    HWY_ALIGN int8_t values[32];
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < 16; ++i) {
      values[i] = kValues[b[2 + i] & 15];
      values[16 + i] = kValues[b[2 + i] >> 4];
    }
#else
    const hn::FixedTag<int8_t, 16> d8;
    const hn::FixedTag<uint8_t, 16> du8;
    const auto table = hn::Load(d8, kValues);
    const auto nibbles = hn::LoadU(du8, b + 2);
    const auto low = hn::And(nibbles, hn::Set(du8, 15));
    const auto high = hn::BitCast(du8, hn::ShiftRight<4>(hn::BitCast(hn::FixedTag<uint16_t, 8>(),
                                                                     hn::AndNot(hn::Set(du8, 15), nibbles))));
    hn::Store(hn::TableLookupBytes(table, hn::BitCast(d8, low)), d8, values);
    hn::Store(hn::TableLookupBytes(table, hn::BitCast(d8, high)), d8, values + 16);
#endif
    const VF d = hn::Set(DF(), HalfAt(b));
    const auto* raw = reinterpret_cast<const uint8_t*>(values);
    for (size_t i = 0; i < 32; i += kLanes) sink(i, hn::Mul(ToFloat(LoadSignedBytes(raw + i)), d));
  }
};

struct BlockQ2K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 84;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const float d = HalfAt(b + 80);
    const float dmin = HalfAt(b + 82);
    for (size_t s = 0; s < 16; ++s) {
      const VF scale = hn::Set(DF(), d * static_cast<float>(b[s] & 15));
      const VF min = hn::Set(DF(), dmin * static_cast<float>(b[s] >> 4));
      const uint8_t* quants = b + 16 + s / 8 * 32 + s % 2 * 16;
      const int shift = static_cast<int>(s % 8 / 2 * 2);
      for (size_t i = 0; i < 16; i += kLanes) {
        const VI q = hn::And(hn::ShiftRightSame(LoadBytes(quants + i), shift), hn::Set(DI(), 3));
        sink(s * 16 + i, hn::MulSub(ToFloat(q), scale, min));
      }
    }
  }
};

struct BlockQ3K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 110;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const float d = HalfAt(b + 108);
    const uint8_t* scales = b + 96;
    for (size_t s = 0; s < 16; ++s) {
      const int low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
      const int high = scales[8 + s % 4] >> (s / 4 * 2) & 3;
      const VF scale = hn::Set(DF(), d * static_cast<float>((low | high << 4) - 32));
      const uint8_t* quants = b + 32 + s / 8 * 32 + s % 2 * 16;
      const uint8_t* masks = b + s % 2 * 16;
      const int shift = static_cast<int>(s % 8 / 2 * 2);
      const int mask_shift = static_cast<int>(s / 2);
      for (size_t i = 0; i < 16; i += kLanes) {
        const VI q = hn::And(hn::ShiftRightSame(LoadBytes(quants + i), shift), hn::Set(DI(), 3));
        const VI bit = hn::And(hn::ShiftRightSame(LoadBytes(masks + i), mask_shift), hn::Set(DI(), 1));
        // 4 is taken off where the bit is clear.
        const VI value = hn::Sub(hn::Add(q, hn::ShiftLeft<2>(bit)), hn::Set(DI(), 4));
        sink(s * 16 + i, hn::Mul(ToFloat(value), scale));
      }
    }
  }
};

// 8 scales and 8 minima of 6 bits each, in 12 bytes, to bytes: scales then minima.
HWY_INLINE void UnpackScalesAndMins(const uint8_t* s, uint8_t* out) {
  constexpr uint32_t k6 = 0x3F3F3F3FU;
  constexpr uint32_t k4 = 0x0F0F0F0FU;
  constexpr uint32_t k2 = 0x03030303U;
  const auto a = load_unaligned<uint32_t>(s);
  const auto b = load_unaligned<uint32_t>(s + 4);
  const auto c = load_unaligned<uint32_t>(s + 8);
  const uint32_t parts[4] = {a & k6, (c & k4) | ((a >> 6 & k2) << 4), b & k6,
                             (c >> 4 & k4) | ((b >> 6 & k2) << 4)};
  std::memcpy(out, parts, sizeof(parts));
}

struct BlockQ4K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 144;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const float d = HalfAt(b);
    const float dmin = HalfAt(b + 2);
    uint8_t scales[16];
    UnpackScalesAndMins(b + 4, scales);
    for (size_t g = 0; g < 4; ++g) {
      const uint8_t* quants = b + 16 + g * 32;
      const VF scale0 = hn::Set(DF(), d * static_cast<float>(scales[2 * g]));
      const VF min0 = hn::Set(DF(), dmin * static_cast<float>(scales[8 + 2 * g]));
      for (size_t i = 0; i < 32; i += kLanes)
        sink(g * 64 + i, hn::MulSub(ToFloat(Low4(quants + i)), scale0, min0));
      const VF scale1 = hn::Set(DF(), d * static_cast<float>(scales[2 * g + 1]));
      const VF min1 = hn::Set(DF(), dmin * static_cast<float>(scales[9 + 2 * g]));
      for (size_t i = 0; i < 32; i += kLanes) {
        sink(g * 64 + 32 + i, hn::MulSub(ToFloat(High4(quants + i)), scale1, min1));
      }
    }
  }
};

struct BlockQ5K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 176;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const float d = HalfAt(b);
    const float dmin = HalfAt(b + 2);
    uint8_t scales[16];
    UnpackScalesAndMins(b + 4, scales);
    for (size_t s = 0; s < 8; ++s) {
      const uint8_t* quants = b + 48 + s / 2 * 32;
      const VF scale = hn::Set(DF(), d * static_cast<float>(scales[s]));
      const VF min = hn::Set(DF(), dmin * static_cast<float>(scales[8 + s]));
      for (size_t i = 0; i < 32; i += kLanes) {
        const VI low = s % 2 == 0 ? Low4(quants + i) : High4(quants + i);
        const VI bit =
            hn::And(hn::ShiftRightSame(LoadBytes(b + 16 + i), static_cast<int>(s)), hn::Set(DI(), 1));
        sink(s * 32 + i, hn::MulSub(ToFloat(hn::Or(low, hn::ShiftLeft<4>(bit))), scale, min));
      }
    }
  }
};

struct BlockQ6K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 210;
  template <class Sink>
  static HWY_INLINE void Decode(const uint8_t* b, Sink& sink) {
    const float d = HalfAt(b + 208);
    for (size_t s = 0; s < 16; ++s) {
      const VF scale = hn::Set(DF(), d * static_cast<float>(static_cast<int8_t>(b[192 + s])));
      const size_t quarter = s % 8 / 2;
      const uint8_t* lows = b + s / 8 * 64 + quarter % 2 * 32 + s % 2 * 16;
      const uint8_t* highs = b + 128 + s / 8 * 32 + s % 2 * 16;
      for (size_t i = 0; i < 16; i += kLanes) {
        const VI low = quarter < 2 ? Low4(lows + i) : High4(lows + i);
        const VI high = hn::And(hn::ShiftRightSame(LoadBytes(highs + i), static_cast<int>(quarter * 2)),
                                hn::Set(DI(), 3));
        const VI q = hn::Sub(hn::Or(low, hn::ShiftLeft<4>(high)), hn::Set(DI(), 32));
        sink(s * 16 + i, hn::Mul(ToFloat(q), scale));
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
