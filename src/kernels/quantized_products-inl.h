// Products of whole numbers, and the chain of roundings that sums up blocks, once per instruction set.

#include "kernels/quantized_blocks-inl.h"
#include "kernels/quantized_rows.h"

#if defined(QWENCH_KERNELS_QUANTIZED_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_QUANTIZED_PRODUCTS_INL_H_
#undef QWENCH_KERNELS_QUANTIZED_PRODUCTS_INL_H_
#else
#define QWENCH_KERNELS_QUANTIZED_PRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// The sum of an output, block by block: with the exact sum of a block or of half a block,
//   acc = fma(float(sum), scale_w * scale_x, acc), then acc = fma(min_w, sum of x, acc) where there are
//   minima.
template <class DFloat, class V = hn::Vec<DFloat>>
HWY_INLINE V Chain(DFloat d, hn::Vec<hn::Rebind<int32_t, DFloat>> sum, V scale_w, V scale_x, V acc) {
  return hn::MulAdd(hn::ConvertTo(d, sum), hn::Mul(scale_w, scale_x), acc);
}

#if HWY_TARGET != HWY_SCALAR
// Adds the products of 16-bit numbers, each with its neighbour's, to 32-bit sums. sum0 + sum1 is the total;
// RearrangeToOddPlusEven(sum0, sum1) that of lanes 2 i and 2 i + 1 in lane i.
template <class D32, class V16, class V32 = hn::Vec<D32>>
HWY_INLINE V32 AddProducts(D32 d32, V16 a, V16 b, V32 sum0, V32& sum1) {
#if HWY_TARGET == HWY_AVX3_DL
  // Highway's attributes for this target, which needs VNNI, leave the name of the extension out.
  (void)d32;
  (void)sum1;
  asm("vpdpwssd %2, %1, %0" : "+v"(sum0.raw) : "v"(a.raw), "v"(b.raw));
  return sum0;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // As Highway does it, but adding in place: GCC otherwise takes a new register for each sum and keeps old
  // ones in memory, which halves the speed of a tile.
  (void)d32;
  (void)sum1;
  V16 products;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
      : "+v"(sum0.raw), "=&v"(products.raw)
      : "v"(a.raw), "v"(b.raw));
  return sum0;
#else
  return hn::ReorderWidenMulAccumulate(d32, a, b, sum0, sum1);
#endif
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
