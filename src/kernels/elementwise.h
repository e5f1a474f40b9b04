#pragma once

#include <cstdint>

namespace qwench {

void add(float* x, const float* y, int64_t n);  ///< x += y

/// gate = gate / (1 + exp(-gate)) * up (Shazeer 2020, arXiv:2002.05202); no overflow for any finite gate. The
/// factor of up is within 3 units of the last place, on every instruction set.
void silu_mul(float* gate, const float* up, int64_t n);

/// The index of the largest of x[0, n), the first of equals; -1 where one is not finite. n >= 1.
int32_t argmax(const float* x, int64_t n);

/// y[i] = exp(x[i]) for x <= 0: the exponential of attention and silu, by itself for its test.
void exp_non_positive(const float* x, int64_t n, float* y);

}  // namespace qwench
