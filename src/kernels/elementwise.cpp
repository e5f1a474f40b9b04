#include "kernels/elementwise.h"

#include <algorithm>
#include <limits>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

void AddTo(float* x, const float* y, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i)
                       HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, x + i); });
}

void SiluMul(float* gate, const float* up, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    // sigmoid(x) = 1 / (1 + z) for x >= 0 and z / (1 + z) below, with z = exp(-|x|) <= 1.
    const auto one = hn::Set(d, 1.0F);
    const auto x = hn::LoadU(d, gate + i);
    const auto z = ExpNonPositive(d, hn::Neg(hn::Abs(x)));
    const auto top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), z, one);
    const auto silu = hn::Div(hn::Mul(x, top), hn::Add(one, z));
    hn::StoreU(hn::Mul(silu, hn::LoadU(d, up + i)), d, gate + i);
  });
}

void ExpTo(const float* x, int64_t n, float* y) {
  ForEachVector(
      n, [&](auto d, int64_t i) HWY_ATTR { hn::StoreU(ExpNonPositive(d, hn::LoadU(d, x + i)), d, y + i); });
}

int32_t ArgMax(const float* x, int64_t n) {
  const DF d;
  VF highest = hn::Set(d, -std::numeric_limits<float>::infinity());
  VF zeros = hn::Zero(d);  // x * 0 is 0 for finite x, else NaN
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    const VF v = hn::LoadU(d, x + i);
    highest = hn::Max(highest, v);
    zeros = hn::MulAdd(v, hn::Zero(d), zeros);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::StoreU(highest, d, lanes);
  float best = *std::max_element(lanes, lanes + kLanes);
  float zero = SumLanes(zeros);
  for (; i < n; ++i) {
    best = std::max(best, x[i]);
    zero += x[i] * 0.0F;
  }
  if (!(zero == 0.0F)) return -1;
  for (i = 0; i + kStep <= n; i += kStep) {
    if (!hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), hn::Set(d, best)))) break;
  }
  while (i < n - 1 && x[i] != best) ++i;
  return static_cast<int32_t>(i);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(AddTo);
HWY_EXPORT(SiluMul);
HWY_EXPORT(ExpTo);
HWY_EXPORT(ArgMax);

void add(float* x, const float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(AddTo)(x, y, n); }
void silu_mul(float* gate, const float* up, int64_t n) { HWY_DYNAMIC_DISPATCH(SiluMul)(gate, up, n); }
void exp_non_positive(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(ExpTo)(x, n, y); }
int32_t argmax(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(ArgMax)(x, n); }

}  // namespace qwench
#endif
