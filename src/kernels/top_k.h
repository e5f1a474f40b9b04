#pragma once

#include <cstdint>

namespace qwench {

/// The k largest of x[0, n), largest first and equals by index, into ids and values [k]; 1 <= k <= n. ids[0]
/// is -1, and the others say nothing, where one of x is not finite. Allocates nothing.
void top_k(const float* x, int64_t n, int k, int32_t* ids, float* values);

}  // namespace qwench
