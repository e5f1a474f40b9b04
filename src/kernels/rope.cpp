#include "kernels/rope.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

void RopeHalves(float* x, const float* cos, const float* sin, int64_t half) {
  ForEachVector(half, [&](auto d, int64_t i) HWY_ATTR {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + half + i);
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::LoadU(d, sin + i);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, x + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, x + half + i);
  });
}

void RopeInterleaved(float* x, const float* cos, const float* sin, int64_t half) {
  ForEachVector(half, [&](auto d, int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> a;
    hn::Vec<decltype(d)> b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::LoadU(d, sin + i);
    hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d, x + 2 * i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(RopeHalves);
HWY_EXPORT(RopeInterleaved);

void rope_halves(float* x, const float* cos, const float* sin, int64_t half) {
  HWY_DYNAMIC_DISPATCH(RopeHalves)(x, cos, sin, half);
}

void rope_interleaved(float* x, const float* cos, const float* sin, int64_t half) {
  HWY_DYNAMIC_DISPATCH(RopeInterleaved)(x, cos, sin, half);
}

}  // namespace qwench
#endif
