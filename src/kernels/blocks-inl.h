// Quantized blocks as vectors of f32, once per instruction set. For each type, Header holds what its parts of
// 32 elements share, and Part calls sink(i, v) with the values of elements [i, i + kLanes) of one part, i
// ascending. Layouts as in unpack_reference.cpp. Every product is exact in f32, so that a fused multiply-add
// gives the same bits as a multiplication and an addition.

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

constexpr int kPart = 32;

HWY_INLINE float HalfAt(const uint8_t* p) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return _cvtsh_ss(load_unaligned<uint16_t>(p));
#else
  return f16_to_f32(load_unaligned<uint16_t>(p));
#endif
}
HWY_INLINE VI Low4(const uint8_t* p) { return hn::And(LoadBytes(p), hn::Set(DI(), 15)); }
HWY_INLINE VI High4(const uint8_t* p) { return hn::ShiftRight<4>(LoadBytes(p)); }

// `Bits` bits of each byte at p, from bit `shift` on.
template <int Bits>
HWY_INLINE VI BitsAt(const uint8_t* p, int shift) {
  return hn::And(hn::ShiftRightSame(LoadBytes(p), shift), hn::Set(DI(), (1 << Bits) - 1));
}

// Bits [first, first + kLanes) of `bits`, each as 16 or 0: the fifth bit of the 5-bit types.
HWY_INLINE VI FifthBits(uint32_t bits, size_t first) {
  const VI one = hn::Shl(hn::Set(DI(), 1), hn::Iota(DI(), 0));
  const VI shifted = hn::Set(DI(), static_cast<int32_t>(bits >> first & 0xFFFFU));
  return hn::IfThenElseZero(hn::TestBit(shifted, one), hn::Set(DI(), 16));
}

struct BlockQ8_0 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 34;
  struct Header {
    float d;
    explicit HWY_INLINE Header(const uint8_t* b) : d(HalfAt(b)) {}
  };
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int /*part*/, Sink& sink) {
    const VF d = hn::Set(DF(), h.d);
    for (size_t i = 0; i < 32; i += kLanes) sink(i, hn::Mul(ToFloat(LoadSignedBytes(b + 2 + i)), d));
  }
};

struct BlockQ4_0 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 18;
  using Header = BlockQ8_0::Header;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int /*part*/, Sink& sink) {
    const VF d = hn::Set(DF(), h.d);
    const VI eight = hn::Set(DI(), 8);
    for (size_t i = 0; i < 16; i += kLanes) sink(i, hn::Mul(ToFloat(hn::Sub(Low4(b + 2 + i), eight)), d));
    for (size_t i = 0; i < 16; i += kLanes)
      sink(16 + i, hn::Mul(ToFloat(hn::Sub(High4(b + 2 + i), eight)), d));
  }
};

struct ScaleAndMin {
  float d;
  float m;
  explicit HWY_INLINE ScaleAndMin(const uint8_t* b) : d(HalfAt(b)), m(HalfAt(b + 2)) {}
};

struct BlockQ4_1 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 20;
  using Header = ScaleAndMin;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int /*part*/, Sink& sink) {
    const VF d = hn::Set(DF(), h.d);
    const VF m = hn::Set(DF(), h.m);
    for (size_t i = 0; i < 16; i += kLanes) sink(i, hn::MulAdd(ToFloat(Low4(b + 4 + i)), d, m));
    for (size_t i = 0; i < 16; i += kLanes) sink(16 + i, hn::MulAdd(ToFloat(High4(b + 4 + i)), d, m));
  }
};

struct BlockQ5_0 {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 22;
  using Header = BlockQ8_0::Header;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int /*part*/, Sink& sink) {
    const VF d = hn::Set(DF(), h.d);
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
  using Header = ScaleAndMin;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int /*part*/, Sink& sink) {
    const VF d = hn::Set(DF(), h.d);
    const VF m = hn::Set(DF(), h.m);
    const auto high = load_unaligned<uint32_t>(b + 4);
    for (size_t i = 0; i < 32; i += kLanes) {
      const VI low = i < 16 ? Low4(b + 8 + i) : High4(b + 8 + i - 16);
      sink(i, hn::MulAdd(ToFloat(hn::Or(low, FifthBits(high, i))), d, m));
    }
  }
};

alignas(16) constexpr int8_t kIq4NlValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};

struct BlockIq4Nl {
  static constexpr int64_t kSize = 32;
  static constexpr int64_t kBytes = 18;
  using Header = BlockQ8_0::Header;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int /*part*/, Sink& sink) {
    HWY_ALIGN int8_t values[32];
    LookUp(b + 2, values);
    const VF d = hn::Set(DF(), h.d);
    const auto* raw = reinterpret_cast<const uint8_t*>(values);
    for (size_t i = 0; i < 32; i += kLanes) sink(i, hn::Mul(ToFloat(LoadSignedBytes(raw + i)), d));
  }

 private:
  static HWY_INLINE void LookUp(const uint8_t* nibbles, int8_t* values) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < 16; ++i) {
      values[i] = kIq4NlValues[nibbles[i] & 15];
      values[16 + i] = kIq4NlValues[nibbles[i] >> 4];
    }
#else
    const hn::FixedTag<int8_t, 16> d8;
    const hn::FixedTag<uint8_t, 16> du8;
    const hn::FixedTag<uint16_t, 8> du16;
    const auto table = hn::Load(d8, kIq4NlValues);
    const auto both = hn::LoadU(du8, nibbles);
    const auto low = hn::And(both, hn::Set(du8, 15));
    const auto high = hn::BitCast(du8, hn::ShiftRight<4>(hn::BitCast(du16, hn::Xor(both, low))));
    hn::Store(hn::TableLookupBytes(table, hn::BitCast(d8, low)), d8, values);
    hn::Store(hn::TableLookupBytes(table, hn::BitCast(d8, high)), d8, values + 16);
#endif
  }
};

// scale[i] = d * bytes[i] for N bytes.
template <int N>
HWY_INLINE void ScaleBytes(const uint8_t* bytes, float d, float* scale) {
  const hn::CappedTag<float, 8> d8;
  const hn::Rebind<int32_t, decltype(d8)> di;
  const hn::Rebind<uint8_t, decltype(d8)> du8;
  for (size_t i = 0; i < N; i += hn::MaxLanes(d8)) {
    const auto whole = hn::PromoteTo(di, LoadAnywhere(du8, bytes + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d8, whole), hn::Set(d8, d)), d8, scale + i);
  }
}

// 16 scales and 16 minima of 4 bits each.
struct BlockQ2K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 84;
  struct Header {
    float scale[16];
    float min[16];
    explicit HWY_INLINE Header(const uint8_t* b) {
      uint8_t low[16];
      uint8_t high[16];
      for (int i = 0; i < 16; ++i) low[i] = b[i] & 15;
      for (int i = 0; i < 16; ++i) high[i] = b[i] >> 4;
      ScaleBytes<16>(low, HalfAt(b + 80), scale);
      ScaleBytes<16>(high, HalfAt(b + 82), min);
    }
  };
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int part, Sink& sink) {
    const uint8_t* quants = b + 16 + part / 4 * 32;
    for (size_t i = 0; i < 32; i += kLanes) {
      const size_t s = static_cast<size_t>(part) * 2 + i / 16;
      const VF q = ToFloat(BitsAt<2>(quants + i, part % 4 * 2));
      sink(i, hn::MulSub(q, hn::Set(DF(), h.scale[s]), hn::Set(DF(), h.min[s])));
    }
  }
};

// 16 scales of 6 bits: the low 4 in 8 bytes, the high 2 in 4 bytes.
struct BlockQ3K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 110;
  struct Header {
    float scale[16];
    explicit HWY_INLINE Header(const uint8_t* b) {
      const float d = HalfAt(b + 108);
      const uint8_t* s = b + 96;
      for (int i = 0; i < 16; ++i) {
        const int low = i < 8 ? s[i] & 15 : s[i - 8] >> 4;
        const int high = s[8 + i % 4] >> (i / 4 * 2) & 3;
        scale[i] = d * static_cast<float>((low | high << 4) - 32);
      }
    }
  };
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int part, Sink& sink) {
    const uint8_t* quants = b + 32 + part / 4 * 32;
    for (size_t i = 0; i < 32; i += kLanes) {
      // 4 is taken off where the bit of the mask is clear.
      const VI q = hn::Or(BitsAt<2>(quants + i, part % 4 * 2), hn::ShiftLeft<2>(BitsAt<1>(b + i, part)));
      const VF scale = hn::Set(DF(), h.scale[static_cast<size_t>(part) * 2 + i / 16]);
      sink(i, hn::Mul(ToFloat(hn::Sub(q, hn::Set(DI(), 4))), scale));
    }
  }
};

// 8 scales and 8 minima of 6 bits each in 12 bytes (q4_k, q5_k).
struct ScalesAndMins {
  float scale[8];
  float min[8];
  explicit HWY_INLINE ScalesAndMins(const uint8_t* b) {
    constexpr uint32_t k6 = 0x3F3F3F3FU;
    constexpr uint32_t k4 = 0x0F0F0F0FU;
    constexpr uint32_t k2 = 0x03030303U;
    const auto s = load_unaligned<uint32_t>(b + 4);
    const auto m = load_unaligned<uint32_t>(b + 8);
    const auto rest = load_unaligned<uint32_t>(b + 12);
    const uint32_t scales[2] = {s & k6, (rest & k4) | ((s >> 6 & k2) << 4)};
    const uint32_t mins[2] = {m & k6, (rest >> 4 & k4) | ((m >> 6 & k2) << 4)};
    ScaleBytes<8>(reinterpret_cast<const uint8_t*>(scales), HalfAt(b), scale);
    ScaleBytes<8>(reinterpret_cast<const uint8_t*>(mins), HalfAt(b + 2), min);
  }
};

struct BlockQ4K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 144;
  using Header = ScalesAndMins;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int part, Sink& sink) {
    const uint8_t* quants = b + 16 + part / 2 * 32;
    const VF scale = hn::Set(DF(), h.scale[part]);
    const VF min = hn::Set(DF(), h.min[part]);
    for (size_t i = 0; i < 32; i += kLanes) {
      sink(i, hn::MulSub(ToFloat(BitsAt<4>(quants + i, part % 2 * 4)), scale, min));
    }
  }
};

struct BlockQ5K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 176;
  using Header = ScalesAndMins;
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int part, Sink& sink) {
    const uint8_t* quants = b + 48 + part / 2 * 32;
    const VF scale = hn::Set(DF(), h.scale[part]);
    const VF min = hn::Set(DF(), h.min[part]);
    for (size_t i = 0; i < 32; i += kLanes) {
      const VI high = hn::ShiftLeft<4>(BitsAt<1>(b + 16 + i, part));
      sink(i, hn::MulSub(ToFloat(hn::Or(BitsAt<4>(quants + i, part % 2 * 4), high)), scale, min));
    }
  }
};

// 16 scales of 8 bits.
struct BlockQ6K {
  static constexpr int64_t kSize = 256;
  static constexpr int64_t kBytes = 210;
  struct Header {
    float scale[16];
    explicit HWY_INLINE Header(const uint8_t* b) {
      const VF d = hn::Set(DF(), HalfAt(b + 208));
      for (size_t i = 0; i < 16; i += kLanes) {
        hn::StoreU(hn::Mul(ToFloat(LoadSignedBytes(b + 192 + i)), d), DF(), scale + i);
      }
    }
  };
  template <class Sink>
  static HWY_INLINE void Part(const uint8_t* b, const Header& h, int part, Sink& sink) {
    const uint8_t* lows = b + part / 4 * 64 + part % 2 * 32;
    const uint8_t* highs = b + 128 + part / 4 * 32;
    for (size_t i = 0; i < 32; i += kLanes) {
      const VI high = hn::ShiftLeft<4>(BitsAt<2>(highs + i, part % 4 * 2));
      const VI q = hn::Sub(hn::Or(BitsAt<4>(lows + i, part % 4 / 2 * 4), high), hn::Set(DI(), 32));
      sink(i, hn::Mul(ToFloat(q), hn::Set(DF(), h.scale[static_cast<size_t>(part) * 2 + i / 16])));
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
