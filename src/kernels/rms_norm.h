#pragma once

#include <cstdint>

namespace qwench {

/// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i], i in [0, n) (Zhang & Sennrich 2019, arXiv:1910.07467).
/// The squares are summed in an order that depends on n alone. `out` may be `x`.
void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out);

}  // namespace qwench
