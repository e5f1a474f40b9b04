// Products of bytes, once per instruction set: unsigned ones of weights with signed ones of activations
// (ByteRows). Four neighbours are a 32-bit lane, a "quad".

#include "kernels/quantized_panel-inl.h"

#if defined(QWENCH_KERNELS_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_BYTE_PRODUCTS_INL_H_
#undef QWENCH_KERNELS_BYTE_PRODUCTS_INL_H_
#else
#define QWENCH_KERNELS_BYTE_PRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Quads whose products may be added to one sum. Where there is no instruction that adds up in 32 bits, sums
// are of 16 bits: 8 * 2 * 15 * 127 and 4 * 2 * 31 * 127 are below 2^15.
template <int kBits>
constexpr int kQuadsInSum = kBits > 4 && (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 ||
                                          HWY_TARGET == HWY_AVX3)
                                ? 4
                                : 8;

// Adds the sum of each quad's products to a sum, of which TotalOfQuads gives 32-bit lanes.
template <class D32, class V = hn::Vec<D32>>
HWY_INLINE V AddQuads(D32 d, V w, V x, V sum, V& more) {
  (void)d;
  (void)more;
#if HWY_TARGET == HWY_AVX3_DL
  // Highway's attributes for this target, which needs VNNI, leave the name of the extension out.
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
  return sum;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // In place, as in AddProducts.
  V products;
  asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
      : "+v"(sum.raw), "=&v"(products.raw)
      : "v"(w.raw), "v"(x.raw));
  return sum;
#elif HWY_TARGET == HWY_SSE4
  return V{_mm_add_epi16(sum.raw, _mm_maddubs_epi16(w.raw, x.raw))};
#elif HWY_TARGET == HWY_NEON
  const int8x16_t w8 = vreinterpretq_s8_s32(w.raw);
  const int8x16_t x8 = vreinterpretq_s8_s32(x.raw);
  more = V(vpadalq_s16(more.raw, vmull_s8(vget_high_s8(w8), vget_high_s8(x8))));
  return V(vpadalq_s16(sum.raw, vmull_s8(vget_low_s8(w8), vget_low_s8(x8))));
#else
  Unroll<4>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const V of_w = hn::And(hn::ShiftRight<8 * i>(w), hn::Set(d, 255));
    sum = hn::Add(sum, hn::Mul(of_w, hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * i>(x))));
  });
  return sum;
#endif
}

template <class D32, class V = hn::Vec<D32>>
HWY_INLINE V TotalOfQuads(D32 d, V sum, V more) {
  (void)d;
  (void)more;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_SSE4
  const hn::Repartition<int16_t, D32> d16;
  const auto ones = hn::Set(d16, 1);
  V total;
#if HWY_TARGET == HWY_SSE4
  total = V{_mm_madd_epi16(sum.raw, ones.raw)};
#else
  asm("vpmaddwd %2, %1, %0" : "=v"(total.raw) : "v"(sum.raw), "v"(ones.raw));
#endif
  return total;
#elif HWY_TARGET == HWY_NEON
  return V(vpaddq_s32(sum.raw, more.raw));
#else
  return sum;
#endif
}

// One quad of x in every lane.
template <class D32>
HWY_INLINE hn::Vec<D32> QuadOfX(D32 d, const int8_t* x) {
  return hn::Set(d, load_unaligned<int32_t>(reinterpret_cast<const uint8_t*>(x)));
}

// The sum of an output, block by block: `total` is the exact one of the fields, all of them numbers below
// 2^24. With minima as in Chain; without, `min` is what is added to each field and `sum_x` the sum of the
// values of x, and total + min * sum_x exact again.
template <bool kMins, class D, class V = hn::Vec<D>>
HWY_INLINE V ByteChain(D /*d*/, V total, V scale_w, V scale_x, V min, V sum_x, V acc) {
  if constexpr (!kMins) total = hn::MulAdd(min, sum_x, total);
  acc = hn::MulAdd(total, hn::Mul(scale_w, scale_x), acc);
  if constexpr (kMins) acc = hn::MulAdd(min, sum_x, acc);
  return acc;
}

// f(q, quads) for the quads q = 0 to 7 of a part, of the rows that the lanes of `d` stand for.
template <class P, class D32, class F>
HWY_INLINE void ForQuads(D32 d, const uint8_t* part, F&& f) {
  static_assert(P::kBytes && (P::kBits == 4 || P::kBits == 5 || P::kBits == 8));
  const auto load = [&](int v) HWY_ATTR __attribute__((always_inline)) {
    return LoadAnywhere(d, part + v * kVectorBytes);
  };
  Unroll<8>([&](auto q) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (P::kBits == 8) {
      f(q, load(q));
    } else {
      auto quads = hn::And(hn::ShiftRight<q % 2 * 4>(load(q / 2)), hn::Set(d, 0x0F0F0F0F));
      if constexpr (P::kBits == 5) {
        const auto all = load(4);
        const auto bits = q < 4                    ? hn::ShiftLeft < q < 4 ? 4 - q : 0 > (all)
                                             : hn::ShiftRight < q < 4 ? 0
                                                   : q - 4 > (all);
        quads = hn::Or(quads, hn::And(bits, hn::Set(d, 0x10101010)));
      }
      f(q, quads);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
