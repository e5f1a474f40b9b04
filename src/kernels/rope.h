#pragma once

#include <cstdint>

namespace qwench {

/// Rotates one head in place: (a, b) -> (a cos - b sin, b cos + a sin) for the pairs (i, i + half) (Su et al.
/// 2021, arXiv:2104.09864, in Hugging Face's pairing). x [2 * half], cos and sin [half].
void rope_halves(float* x, const float* cos, const float* sin, int64_t half);

/// The same for the pairs (2 i, 2 i + 1).
void rope_interleaved(float* x, const float* cos, const float* sin, int64_t half);

}  // namespace qwench
