#include "kernels/rms_norm.h"

#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  const DF d;
  VF sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
    for (int64_t s = 0; s < 4; ++s) {
      const VF v = hn::LoadU(d, x + i + s * kStep);
      sums[s] = hn::MulAdd(v, v, sums[s]);
    }
  }
  for (; i + kStep <= n; i += kStep) {
    const VF v = hn::LoadU(d, x + i);
    sums[0] = hn::MulAdd(v, v, sums[0]);
  }
  float squares = SumLanes(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
  for (; i < n; ++i) squares += x[i] * x[i];
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(n) + eps);
  ForEachVector(n, [&](auto tag, int64_t at) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(tag, x + at), hn::Set(tag, scale));
    hn::StoreU(hn::Mul(scaled, hn::LoadU(tag, weight + at)), tag, out + at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(RmsNorm);

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x, weight, eps, n, out);
}

}  // namespace qwench
#endif
