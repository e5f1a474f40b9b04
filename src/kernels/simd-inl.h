// What the kernels share, once per instruction set: vector types, loads of the plain storage types, sums of
// lanes, exp. Include after hwy/highway.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/half.h"

#if defined(QWENCH_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_SIMD_INL_H_
#undef QWENCH_KERNELS_SIMD_INL_H_
#else
#define QWENCH_KERNELS_SIMD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that half a block of 32 quantized numbers is a whole number of vectors.
using DF = hn::CappedTag<float, 16>;
using DI = hn::Rebind<int32_t, DF>;
using DU = hn::Rebind<uint32_t, DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
constexpr size_t kLanes = hn::MaxLanes(DF());
constexpr int64_t kStep = static_cast<int64_t>(kLanes);

// A load from any address: Highway's own, but for the one-lane target, which dereferences.
template <class D>
HWY_INLINE hn::Vec<D> LoadAnywhere(D d, const uint8_t* p) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, load_unaligned<hn::TFromD<D>>(p));
#else
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(p));
#endif
}

HWY_INLINE VI LoadBytes(const uint8_t* p) {
  return hn::PromoteTo(DI(), LoadAnywhere(hn::Rebind<uint8_t, DF>(), p));
}
HWY_INLINE VI LoadSignedBytes(const uint8_t* p) {
  return hn::PromoteTo(DI(), LoadAnywhere(hn::Rebind<int8_t, DF>(), p));
}
HWY_INLINE VF ToFloat(VI v) { return hn::ConvertTo(DF(), v); }

// The plain storage types: a vector of them as f32.
struct ElementF32 {
  static constexpr int64_t kBytes = 4;
  static HWY_INLINE VF Load(const uint8_t* p) { return LoadAnywhere(DF(), p); }
};

struct ElementBf16 {
  static constexpr int64_t kBytes = 2;
  static HWY_INLINE VF Load(const uint8_t* p) {
    const auto bits = hn::PromoteTo(DU(), LoadAnywhere(hn::Rebind<uint16_t, DF>(), p));
    return hn::BitCast(DF(), hn::ShiftLeft<16>(bits));
  }
};

struct ElementF16 {
  static constexpr int64_t kBytes = 2;
  static HWY_INLINE VF Load(const uint8_t* p) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    return hn::PromoteTo(
        DF(), hn::LoadU(hn::Rebind<hwy::float16_t, DF>(), reinterpret_cast<const hwy::float16_t*>(p)));
#else
    // As f16_to_f32 of half.h, lane by lane.
    const DU du;
    const auto half = hn::PromoteTo(du, LoadAnywhere(hn::Rebind<uint16_t, DF>(), p));
    const auto magnitude = hn::And(half, hn::Set(du, 0x7FFFU));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const VF finite = hn::Mul(hn::BitCast(DF(), shifted), hn::Set(DF(), 0x1p112F));
    const VF special = hn::BitCast(DF(), hn::Or(shifted, hn::Set(du, 0x7F800000U)));
    const auto is_special = hn::Gt(hn::BitCast(DI(), magnitude), hn::Set(DI(), 0x7BFF));
    const VF value = hn::IfThenElse(hn::RebindMask(DF(), is_special), special, finite);
    return hn::Or(value, hn::BitCast(DF(), sign));
#endif
  }
};

// The last `count` < kLanes elements of a row, then zeros; reads nothing behind them.
template <class E>
HWY_INLINE VF LoadTail(const uint8_t* p, int64_t count) {
  HWY_ALIGN uint8_t padded[kLanes * 4] = {};
  std::memcpy(padded, p, std::min(static_cast<size_t>(count * E::kBytes), sizeof(padded)));
  return E::Load(padded);
}

#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE hn::Vec128<float, 4> FoldTo4(D d, V v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return FoldTo4(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    (void)d;
    return v;
  }
}
#endif

// out[0..4) = the sums of the lanes of a, b, c, d. Each is summed by the same tree, whichever of the four it
// is: the upper half of the lanes is added to the lower half until one lane is left.
HWY_INLINE void SumLanes4(VF a, VF b, VF c, VF d, float* out) {
#if HWY_TARGET == HWY_SCALAR
  out[0] = hn::GetLane(a);
  out[1] = hn::GetLane(b);
  out[2] = hn::GetLane(c);
  out[3] = hn::GetLane(d);
#else
  const hn::FixedTag<float, 4> d4;
  const auto a4 = FoldTo4(DF(), a);
  const auto b4 = FoldTo4(DF(), b);
  const auto c4 = FoldTo4(DF(), c);
  const auto d4v = FoldTo4(DF(), d);
  const auto ab =
      hn::Add(hn::InterleaveLower(d4, a4, b4), hn::InterleaveUpper(d4, a4, b4));  // a02 b02 a13 b13
  const auto cd = hn::Add(hn::InterleaveLower(d4, c4, d4v), hn::InterleaveUpper(d4, c4, d4v));
  hn::StoreU(hn::Add(hn::ConcatLowerLower(d4, cd, ab), hn::ConcatUpperUpper(d4, cd, ab)), d4, out);
#endif
}

HWY_INLINE float SumLanes(VF v) {
  const VF zero = hn::Zero(DF());
  HWY_ALIGN float sums[4];
  SumLanes4(v, zero, zero, zero, sums);
  return sums[0];
}

// exp(x) for x <= 0, within 1.2 ulp (0.9 with fused multiply-add); 0 below -87.3 (where the result is no
// longer normal); NaN stays NaN. x = n ln 2 + r, |r| <= ln 2 / 2; the series of exp(r) up to r^7 / 7! leaves
// 5e-9.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, V x) {
  const hn::Rebind<int32_t, D> di;
  const V n = hn::Max(hn::Round(hn::Mul(x, hn::Set(d, 1.44269504F))), hn::Set(d, -126.0F));
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1F), x);   // 15 bits of ln 2: exact
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20F), r);  // the rest
  V p = hn::MulAdd(hn::Set(d, 1.0F / 5040), r, hn::Set(d, 1.0F / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  const V y = hn::Mul(p, hn::BitCast(d, power));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3F)), y);
}

// f(0), f(1), ... f(N - 1) with constants, so that arrays of vectors that f indexes live in registers.
template <class F, int... I>
HWY_INLINE void UnrollSequence(F&& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
template <int N, class F>
HWY_INLINE void Unroll(F&& f) {
  UnrollSequence(f, std::make_integer_sequence<int, N>());
}

// f(d, i) for vectors that cover [0, n), one lane at a time at the end.
template <class F>
HWY_INLINE void ForEachVector(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) f(DF(), i);
  for (; i < n; ++i) f(hn::CappedTag<float, 1>(), i);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
