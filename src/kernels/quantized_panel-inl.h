// Panels of quantized weights (panels.h), once per instruction set: fields of bits as vectors of 16-bit
// numbers, and scales as f32.

#include "kernels/panels.h"
#include "kernels/prefetch.h"
#include "kernels/quantized_products-inl.h"

#if defined(QWENCH_KERNELS_QUANTIZED_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_QUANTIZED_PANEL_INL_H_
#undef QWENCH_KERNELS_QUANTIZED_PANEL_INL_H_
#else
#define QWENCH_KERNELS_QUANTIZED_PANEL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// A piece of a panel: as many of its 8 rows as a vector has lanes of 32 bits.
using DG = hn::CappedTag<int32_t, 8>;
using DGF = hn::Rebind<float, DG>;
using VG = hn::Vec<DG>;
using VGF = hn::Vec<DGF>;
constexpr int kPieceRows = static_cast<int>(hn::MaxLanes(DG()));
constexpr int kPieces = static_cast<int>(kPanelRows) / kPieceRows;
constexpr int64_t kVectorBytes = kPanelRows * 4;  // two numbers of 16 bits for each row

// ---------------------------------------------------------------- pairs of numbers

#if HWY_TARGET == HWY_SCALAR
struct Pairs {
  uint16_t v[2];
};
HWY_INLINE Pairs LoadPairs(const void* p) {
  Pairs out;
  std::memcpy(out.v, p, sizeof(out.v));
  return out;
}
HWY_INLINE void StorePairs(Pairs a, void* p) { std::memcpy(p, a.v, sizeof(a.v)); }
HWY_INLINE Pairs MakePairs(int a, int b) { return {{static_cast<uint16_t>(a), static_cast<uint16_t>(b)}}; }
template <int N>
HWY_INLINE Pairs Right(Pairs a) {
  return MakePairs(a.v[0] >> N, a.v[1] >> N);
}
template <int N>
HWY_INLINE Pairs Left(Pairs a) {
  return MakePairs(a.v[0] << N, a.v[1] << N);
}
HWY_INLINE Pairs Masked(Pairs a, int mask) { return MakePairs(a.v[0] & mask, a.v[1] & mask); }
HWY_INLINE Pairs Either(Pairs a, Pairs b) { return MakePairs(a.v[0] | b.v[0], a.v[1] | b.v[1]); }
HWY_INLINE Pairs Moved(Pairs a, int by) { return MakePairs(a.v[0] + by, a.v[1] + by); }
HWY_INLINE Pairs LookUpPairs(const uint8_t* table, Pairs a) {
  return MakePairs(table[a.v[0]], table[a.v[1]]);
}
#else
using DPairs = hn::Repartition<uint16_t, DG>;
using Pairs = hn::Vec<DPairs>;
HWY_INLINE Pairs LoadPairs(const void* p) { return hn::LoadU(DPairs(), static_cast<const uint16_t*>(p)); }
HWY_INLINE void StorePairs(Pairs a, void* p) { hn::StoreU(a, DPairs(), static_cast<uint16_t*>(p)); }
template <int N>
HWY_INLINE Pairs Right(Pairs a) {
  return hn::ShiftRight<N>(a);
}
template <int N>
HWY_INLINE Pairs Left(Pairs a) {
  return hn::ShiftLeft<N>(a);
}
HWY_INLINE Pairs Masked(Pairs a, int mask) {
  return hn::And(a, hn::Set(DPairs(), static_cast<uint16_t>(mask)));
}
HWY_INLINE Pairs Either(Pairs a, Pairs b) { return hn::Or(a, b); }
HWY_INLINE Pairs Moved(Pairs a, int by) { return hn::Add(a, hn::Set(DPairs(), static_cast<uint16_t>(by))); }
// table[a] of 16 entries.
HWY_INLINE Pairs LookUpPairs(const uint8_t* table, Pairs a) {
  const hn::Repartition<uint8_t, DPairs> d8;
  return Masked(hn::BitCast(DPairs(), hn::TableLookupBytes(hn::LoadDup128(d8, table), hn::BitCast(d8, a))),
                0xFF);
}
#endif

// ---------------------------------------------------------------- fields of bits

// The 16 pairs of a part from its B vectors, and back.
template <int B>
struct Fields {
  static constexpr int kMask = (1 << B) - 1;
  static constexpr int kEach = 16 / B;             // pairs in a vector
  static constexpr bool kSpare = 16 % B == 1;      // a bit of each vector belongs to pair 15
  static constexpr int kPlain = kSpare ? 15 : 16;  // pairs that lie in one vector

  template <int P>
  static HWY_INLINE Pairs Get(const Pairs* v) {
    if constexpr (P < kPlain) {
      constexpr int kShift = P % kEach * B;
      if constexpr (kShift + B == 16) {
        return Right<kShift>(v[P / kEach]);
      } else if constexpr (kShift == 0) {
        return Masked(v[P / kEach], kMask);
      } else {
        return Masked(Right<kShift>(v[P / kEach]), kMask);
      }
    } else {
      Pairs bits = Right<15>(v[0]);
      Unroll<B - 1>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
        bits = Either(bits, Masked(Right<14 - i>(v[i + 1]), 2 << i));
      });
      return bits;
    }
  }

  static HWY_INLINE void Put(const Pairs* pairs, Pairs* v) {
    Unroll<B>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      v[i] = pairs[i * kEach];
      Unroll<kEach - 1>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
        v[i] = Either(v[i], Left<(n + 1) * B>(pairs[i * kEach + n + 1]));
      });
      if constexpr (kSpare) v[i] = Either(v[i], Left<15>(Right<i>(pairs[15])));
    });
  }
};

// Four bits as Fields<4>, the fifth of all pairs in a vector of their own: bit q of a byte belongs to quad q
// (byte_products-inl.h).
template <>
struct Fields<5> {
  static constexpr int bit_of(int pair) { return pair % 4 / 2 * 8 + pair / 4 * 2 + pair % 2; }

  template <int P>
  static HWY_INLINE Pairs Get(const Pairs* v) {
    constexpr int kBit = bit_of(P);
    const Pairs high = kBit < 4           ? Left < kBit < 4 ? 4 - kBit : 0 > (v[4])
                                 : Right < kBit < 4 ? 0
                                          : kBit - 4 > (v[4]);
    return Either(Fields<4>::Get<P>(v), Masked(high, 16));
  }

  static HWY_INLINE void Put(const Pairs* pairs, Pairs* v) {
    Pairs low[16];
    v[4] = Masked(pairs[0], 0);
    Unroll<16>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
      low[p] = Masked(pairs[p], 15);
      v[4] = Either(v[4], Left<bit_of(p)>(Right<4>(pairs[p])));
    });
    Fields<4>::Put(low, v);
  }
};

// In an order that gives each four neighbours of x, once masked, those of Fields<4> (ByteRows).
template <>
struct Fields<8> {
  static constexpr int vector_of(int pair) { return pair / 4 * 2 + pair % 2; }

  template <int P>
  static HWY_INLINE Pairs Get(const Pairs* v) {
    if constexpr (P % 4 < 2) {
      return Masked(v[vector_of(P)], 255);
    } else {
      return Right<8>(v[vector_of(P)]);
    }
  }

  static HWY_INLINE void Put(const Pairs* pairs, Pairs* v) {
    for (int p = 0; p < 16; p += 4) {
      for (int i = 0; i < 2; ++i) v[vector_of(p + i)] = Either(pairs[p + i], Left<8>(pairs[p + i + 2]));
    }
  }
};

template <>
struct Fields<6> {
  template <int P>
  static HWY_INLINE Pairs Get(const Pairs* all) {
    const Pairs* v = all + P / 8 * 3;
    constexpr int kAt = P % 8;
    if constexpr (kAt < 6) {
      return Masked(Right<kAt % 2 * 6>(v[kAt / 2]), 63);
    } else {
      return Either(Right<12>(v[kAt - 6]), Masked(Right < kAt == 6 ? 8 : 10 > (v[2]), 0x30));
    }
  }

  static HWY_INLINE void Put(const Pairs* pairs, Pairs* v) {
    for (int half = 0; half < 2; ++half, pairs += 8, v += 3) {
      for (int i = 0; i < 3; ++i) v[i] = Either(pairs[2 * i], Left<6>(pairs[2 * i + 1]));
      v[0] = Either(v[0], Left<12>(pairs[6]));
      v[1] = Either(v[1], Left<12>(pairs[7]));
      v[2] = Either(v[2], Either(Left<12>(Right<4>(pairs[6])), Left<14>(Right<4>(pairs[7]))));
    }
  }
};

// ---------------------------------------------------------------- scales

template <class D>
HWY_INLINE hn::Vec<D> FromHalves(D d, const uint8_t* halves) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::PromoteTo(
      d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(halves)));
#else
  HWY_ALIGN float values[hn::MaxLanes(D())];
  for (size_t i = 0; i < hn::MaxLanes(d); ++i) values[i] = HalfAt(halves + 2 * i);
  return hn::Load(d, values);
#endif
}

// f(row) for the first row of each piece.
template <class F>
HWY_INLINE void ForPieces(F&& f) {
  Unroll<kPieces>([&](auto i) HWY_ATTR __attribute__((always_inline)) { f(i * kPieceRows); });
}

// How the scales of a block of 8 rows lie. Put: from the rows' blocks. Get: scales[i * stride + row], and
// minima to be added.
template <bool kMins>
struct HalfScales {
  static HWY_INLINE void Put(const uint8_t* const* blocks, uint8_t* to) {
    for (int j = 0; j < kPanelRows; ++j) {
      std::memcpy(to + 2 * j, blocks[j], 2);
      if (kMins) std::memcpy(to + 16 + 2 * j, blocks[j] + 2, 2);
    }
  }
  static HWY_INLINE void Get(const uint8_t* from, float* scales, float* mins, int64_t /*stride*/) {
    ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
      hn::StoreU(FromHalves(DGF(), from + 2 * row), DGF(), scales + row);
      if constexpr (kMins) hn::StoreU(FromHalves(DGF(), from + 16 + 2 * row), DGF(), mins + row);
    });
  }
};

// to[i * stride + row] = f(bytes[i * 8 + row]) * of_all, for N times 8 bytes.
template <int N, bool kSigned>
HWY_INLINE void TimesBytes(const uint8_t* bytes, VGF of_all, int row, float* to, int64_t stride) {
  using Byte = std::conditional_t<kSigned, int8_t, uint8_t>;
  for (int i = 0; i < N; ++i) {
    const VG whole = hn::PromoteTo(DG(), LoadAnywhere(hn::Rebind<Byte, DG>(), bytes + i * kPanelRows + row));
    hn::StoreU(hn::Mul(hn::ConvertTo(DGF(), whole), of_all), DGF(), to + i * stride + row);
  }
}

// q4_k, q5_k: 8 scales and 8 minima of 6 bits for each row. 64 bytes of low bits [i, row], the scale's 4
// below the minimum's; 32 bytes of high bits [i % 4, row]: of the minima i and i + 4, then of the scales i
// and i + 4, two each.
struct SixBitScales {
  static HWY_INLINE void Put(const uint8_t* const* blocks, uint8_t* to) {
    std::memset(to, 0, 128);
    for (int j = 0; j < kPanelRows; ++j) {
      const uint8_t* b = blocks[j];
      std::memcpy(to + 2 * j, b, 2);
      std::memcpy(to + 16 + 2 * j, b + 2, 2);
      const uint8_t* s = b + 4;
      for (int i = 0; i < 8; ++i) {
        const int scale = i < 4 ? s[i] & 63 : (s[i + 4] & 15) | s[i - 4] >> 6 << 4;
        const int min = i < 4 ? s[i + 4] & 63 : s[i + 4] >> 4 | s[i] >> 6 << 4;
        to[32 + i * 8 + j] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
        uint8_t& high = to[96 + i % 4 * 8 + j];
        high = static_cast<uint8_t>(high | min >> 4 << i / 4 * 2 | scale >> 4 << (4 + i / 4 * 2));
      }
    }
  }
  static HWY_INLINE void Get(const uint8_t* from, float* scales, float* mins, int64_t stride) {
    HWY_ALIGN uint8_t s[64];
    HWY_ALIGN uint8_t m[64];
    SplitBytes(from + 32, s, m);
    ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
      TimesBytes<8, false>(s, FromHalves(DGF(), from + 2 * row), row, scales, stride);
      TimesBytes<8, false>(m, hn::Neg(FromHalves(DGF(), from + 16 + 2 * row)), row, mins, stride);
    });
  }

 private:
  static HWY_INLINE void SplitBytes(const uint8_t* from, uint8_t* s, uint8_t* m) {
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 32; ++i) {
      const int high = from[64 + i];
      s[i] = static_cast<uint8_t>((from[i] & 15) | (high & 0x30));
      s[32 + i] = static_cast<uint8_t>((from[32 + i] & 15) | (high >> 2 & 0x30));
      m[i] = static_cast<uint8_t>(from[i] >> 4 | (high << 4 & 0x30));
      m[32 + i] = static_cast<uint8_t>(from[32 + i] >> 4 | (high << 2 & 0x30));
    }
#else
    const hn::CappedTag<uint8_t, 32> d;
    const auto low4 = hn::Set(d, 15);
    const auto two = hn::Set(d, 0x30);
    const hn::Repartition<uint16_t, decltype(d)> d16;
    const auto left = [&](auto v, auto n) HWY_ATTR __attribute__((always_inline)) {
      return hn::BitCast(d, hn::ShiftLeft<decltype(n)::value>(hn::BitCast(d16, v)));
    };
    const auto right = [&](auto v, auto n) HWY_ATTR __attribute__((always_inline)) {
      return hn::BitCast(d, hn::ShiftRight<decltype(n)::value>(hn::BitCast(d16, v)));
    };
    const std::integral_constant<int, 2> by2;
    const std::integral_constant<int, 4> by4;
    for (size_t i = 0; i < 32; i += hn::MaxLanes(d)) {
      const auto first = hn::LoadU(d, from + i);
      const auto second = hn::LoadU(d, from + 32 + i);
      const auto high = hn::LoadU(d, from + 64 + i);
      hn::Store(hn::Or(hn::And(first, low4), hn::And(high, two)), d, s + i);
      hn::Store(hn::Or(hn::And(second, low4), hn::And(right(high, by2), two)), d, s + 32 + i);
      hn::Store(hn::Or(hn::And(right(first, by4), low4), hn::And(left(high, by4), two)), d, m + i);
      hn::Store(hn::Or(hn::And(right(second, by4), low4), hn::And(left(high, by2), two)), d, m + 32 + i);
    }
#endif
  }
};

// q6_k: 16 signed bytes [i, row].
struct ByteScales {
  static HWY_INLINE void Put(const uint8_t* const* blocks, uint8_t* to) {
    for (int j = 0; j < kPanelRows; ++j) {
      std::memcpy(to + 2 * j, blocks[j] + 208, 2);
      for (int i = 0; i < 16; ++i) to[16 + i * 8 + j] = blocks[j][192 + i];
    }
  }
  static HWY_INLINE void Get(const uint8_t* from, float* scales, float* /*mins*/, int64_t stride) {
    ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
      TimesBytes<16, true>(from + 16, FromHalves(DGF(), from + 2 * row), row, scales, stride);
    });
  }
};

// q2_k: 16 bytes [i, row], the scale in the low 4 bits, the minimum in the high ones.
struct NibbleScales {
  static HWY_INLINE void Put(const uint8_t* const* blocks, uint8_t* to) {
    for (int j = 0; j < kPanelRows; ++j) {
      std::memcpy(to + 2 * j, blocks[j] + 80, 2);
      std::memcpy(to + 16 + 2 * j, blocks[j] + 82, 2);
      for (int i = 0; i < 16; ++i) to[32 + i * 8 + j] = blocks[j][i];
    }
  }
  static HWY_INLINE void Get(const uint8_t* from, float* scales, float* mins, int64_t stride) {
    uint8_t s[128];
    uint8_t m[128];
    for (int i = 0; i < 128; ++i) s[i] = from[32 + i] & 15;
    for (int i = 0; i < 128; ++i) m[i] = static_cast<uint8_t>(from[32 + i] >> 4);
    ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
      TimesBytes<16, false>(s, FromHalves(DGF(), from + 2 * row), row, scales, stride);
      TimesBytes<16, false>(m, hn::Neg(FromHalves(DGF(), from + 16 + 2 * row)), row, mins, stride);
    });
  }
};

// q3_k: 16 scales of 6 bits, less 32. 64 bytes [i % 8, row] of low bits, 4 of i < 8 below those of i + 8; 32
// bytes [i % 4, row] of high bits, two of each i / 4 in ascending order.
struct MovedScales {
  static HWY_INLINE void Put(const uint8_t* const* blocks, uint8_t* to) {
    for (int j = 0; j < kPanelRows; ++j) {
      const uint8_t* s = blocks[j] + 96;
      std::memcpy(to + 2 * j, blocks[j] + 108, 2);
      for (int i = 0; i < 8; ++i) to[16 + i * 8 + j] = s[i];
      for (int i = 0; i < 4; ++i) to[80 + i * 8 + j] = s[8 + i];
    }
  }
  static HWY_INLINE void Get(const uint8_t* from, float* scales, float* /*mins*/, int64_t stride) {
    uint8_t s[128];
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < kPanelRows; ++j) {
        const int low = from[16 + i % 8 * 8 + j] >> i / 8 * 4 & 15;
        const int high = from[80 + i % 4 * 8 + j] >> i / 4 * 2 & 3;
        s[i * 8 + j] = static_cast<uint8_t>((low | high << 4) - 32);
      }
    }
    ForPieces([&](int row) HWY_ATTR __attribute__((always_inline)) {
      TimesBytes<16, true>(s, FromHalves(DGF(), from + 2 * row), row, scales, stride);
    });
  }
};

// ---------------------------------------------------------------- types

// 127 more than kIq4NlValues.
alignas(16) constexpr uint8_t kIq4NlAbove[16] = {0,   23,  44,  62,  78,  92,  105, 117,
                                                 128, 140, 152, 165, 180, 196, 216, 240};

// An element is (field of kBits + kMove) * scale, or that + min; of iq4_nl the field is an index of a table.
template <class Q, int kBitsOf, int kMoveOf, class ScalesOf, bool kTableOf = false>
struct PanelType {
  using Rows = Q;
  using Scales = ScalesOf;
  static constexpr int kBits = kBitsOf;
  static constexpr int kMove = kMoveOf;
  static constexpr bool kTable = kTableOf;
  // Can be multiplied with ByteRows too.
  static constexpr bool kBytes =
      ((kBits == 4 || kBits == 5) && !kTable) || (kBits == 8 && HWY_TARGET == HWY_AVX3_DL);
  static constexpr int kScales = Q::kScales;  // in a part of 32
  static constexpr bool kMins = Q::kMins;
  static constexpr int kParts = static_cast<int>(Q::kSize) / 32;  // in a block
  static constexpr int64_t kPartBytes = kBits * kVectorBytes;
  static constexpr int64_t kScaleBytes = (Q::kBytes - kBits * Q::kSize / 8) * kPanelRows;  // of a block

  // Numbers of pair P of a part, without kMove.
  template <int P>
  static HWY_INLINE Pairs Get(const Pairs* vectors) {
    const Pairs field = Fields<kBits>::template Get<P>(vectors);
    if constexpr (kTable) return LookUpPairs(kIq4NlAbove, field);
    return field;
  }
};

using PanelQ8_0 = PanelType<QuantsQ8_0, 8, -128, HalfScales<false>>;
using PanelQ4_0 = PanelType<QuantsQ4_0, 4, -8, HalfScales<false>>;
using PanelQ4_1 = PanelType<QuantsQ4_1, 4, 0, HalfScales<true>>;
using PanelQ5_0 = PanelType<QuantsQ5_0, 5, -16, HalfScales<false>>;
using PanelQ5_1 = PanelType<QuantsQ5_1, 5, 0, HalfScales<true>>;
using PanelIq4Nl = PanelType<QuantsIq4Nl, 4, -127, HalfScales<false>, true>;
using PanelQ2K = PanelType<QuantsQ2K, 2, 0, NibbleScales>;
using PanelQ3K = PanelType<QuantsQ3K, 3, -4, MovedScales>;
using PanelQ4K = PanelType<QuantsQ4K, 4, 0, SixBitScales>;
using PanelQ5K = PanelType<QuantsQ5K, 5, 0, SixBitScales>;
using PanelQ6K = PanelType<QuantsQ6K, 6, -32, ByteScales>;

// f(P()) with the type's panel type.
template <class F>
HWY_INLINE void WithPanelType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return;
    case DType::q8_0:
      return f(PanelQ8_0());
    case DType::q4_0:
      return f(PanelQ4_0());
    case DType::q4_1:
      return f(PanelQ4_1());
    case DType::q5_0:
      return f(PanelQ5_0());
    case DType::q5_1:
      return f(PanelQ5_1());
    case DType::q2_k:
      return f(PanelQ2K());
    case DType::q3_k:
      return f(PanelQ3K());
    case DType::q4_k:
      return f(PanelQ4K());
    case DType::q5_k:
      return f(PanelQ5K());
    case DType::q6_k:
      return f(PanelQ6K());
    case DType::iq4_nl:
      return f(PanelIq4Nl());
  }
}

// Where things lie in the panels of a matrix, and what to fetch while a block is read: the one that is read
// about kAheadOfQuants bytes later. Its quants and its scales lie apart and are followed each on its own: a
// fetch that is merely a distance ahead misses the scales of the next panel, and the kernel waits for memory
// at its start.
template <class P>
struct PanelGeometry {
  // Bytes from what is read to what is fetched.
  struct Ahead {
    int64_t quants;
    int64_t scales;
  };

  int64_t quants;  // bytes of a panel's quants: where its scales begin
  int64_t bytes;   // of a panel
  int64_t turn;    // before this part what is fetched is `near`; from it on, in one panel more: `far`
  Ahead near;
  Ahead far;

  explicit PanelGeometry(int64_t cols)
      : quants(cols / 32 * P::kPartBytes),
        bytes((quants + cols / 32 / P::kParts * P::kScaleBytes + 63) / 64 * 64) {
    const int64_t parts = cols / 32;
    const int64_t panels = kAhead / parts;
    const int64_t rest = kAhead % parts;
    turn = parts - rest;
    near = {panels * bytes + rest * P::kPartBytes, panels * bytes + rest / P::kParts * P::kScaleBytes};
    far = {near.quants + bytes - quants, near.scales + bytes - parts / P::kParts * P::kScaleBytes};
  }

  // For the block that begins with this part.
  HWY_INLINE Ahead ahead(int64_t part) const { return part < turn ? near : far; }

 private:
  static constexpr int64_t kAhead = kAheadOfQuants / P::kPartBytes / P::kParts * P::kParts;  // parts
};

template <int64_t kBytes>
HWY_INLINE void FetchLines(const uint8_t* p) {
  for (int64_t line = 0; line < kBytes; line += 64) fetch_ahead(p + line);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
