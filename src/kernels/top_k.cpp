#include "kernels/top_k.h"

#include <bit>

namespace qwench {

void top_k(const float* x, int64_t n, int k, int32_t* ids, float* values) {
  int held = 0;
  bool bad = false;
  for (int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    bad |= (std::bit_cast<uint32_t>(value) & 0x7F800000U) == 0x7F800000U;
    if (held == k && !(value > values[k - 1])) continue;
    int at = held < k ? held++ : k - 1;
    for (; at > 0 && values[at - 1] < value; --at) {
      values[at] = values[at - 1];
      ids[at] = ids[at - 1];
    }
    values[at] = value;
    ids[at] = static_cast<int32_t>(i);
  }
  if (bad) ids[0] = -1;
}

}  // namespace qwench
