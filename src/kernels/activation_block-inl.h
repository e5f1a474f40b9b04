// The scale of a block of 32 activations that are quantized, once per instruction set.

#include "kernels/simd-inl.h"

#if defined(QWENCH_KERNELS_ACTIVATION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_ACTIVATION_BLOCK_INL_H_
#undef QWENCH_KERNELS_ACTIVATION_BLOCK_INL_H_
#else
#define QWENCH_KERNELS_ACTIVATION_BLOCK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

constexpr int kBlockVectors = static_cast<int>(32 / kLanes);

struct BlockScale {
  float scale;  // NaN where a number is not finite
  VF inverse;   // 0 there, and where all are below 2^-100
};

// Of x[32], so that the largest magnitude becomes `limit`.
HWY_INLINE BlockScale ScaleOfBlock(const float* x, float limit) {
  const DF d;
  VF largest = hn::Zero(d);
  VF nothing = hn::Zero(d);  // NaN where a number is not finite
  Unroll<kBlockVectors>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const VF v = hn::LoadU(d, x + i * kStep);
    largest = hn::Max(largest, hn::Abs(v));
    nothing = hn::MulAdd(v, hn::Zero(d), nothing);
  });
  const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float nan = hn::GetLane(hn::SumOfLanes(d, nothing));
  return {most / limit + nan, hn::Set(d, most >= 0x1p-100F && nan == 0 ? limit / most : 0.0F)};
}

// The i-th vector of x as whole numbers. What is not finite becomes anything; its scale is NaN.
HWY_INLINE VI RoundedOfBlock(const float* x, int i, VF inverse) {
  return hn::NearestInt(hn::Mul(hn::LoadU(DF(), x + i * kStep), inverse));
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
