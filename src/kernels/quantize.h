#pragma once

#include <cstddef>
#include <cstdint>

#include "qwench/dtype.h"

namespace qwench {

/// Whether `quantize` makes this type: q8_0, q4_0 and q4_k.
bool can_quantize(DType dtype) noexcept;

/// Stores n numbers, a multiple of the type's block size, as blocks of a type that can_quantize. Quants are
/// rounded to nearest with the scale as it is stored. A scale that f16 cannot hold becomes its largest
/// number; a block with a number that is not finite becomes NaN.
///
///   q8_0  scale = largest magnitude / 127
///   q4_0  the number of largest magnitude becomes -8: its end of the range has one more step
///   q4_k  each 32 numbers from the smallest (or 0) to the largest in 15 steps; of some narrower ranges the
///   one
///         with the least squared error
void quantize(DType dtype, const float* src, int64_t n, std::byte* dst);

}  // namespace qwench
