#pragma once

#include <cstddef>
#include <cstdint>

#include "qwench/dtype.h"

namespace qwench {

/// dst[i] = the value of element `begin + i` of the row at `row`, i in [0, n): exact, equal bit for bit to
/// ggml's reference (ggml-quants.c: dequantize_row_*). For quantized types `begin` and `n` are multiples of
/// the block size. `row` need not be aligned.
void unpack(DType dtype, const std::byte* row, int64_t begin, int64_t n, float* dst);

/// The same one number at a time, in plain C++: what the tests compare with.
void unpack_reference(DType dtype, const std::byte* row, int64_t begin, int64_t n, float* dst);

/// Stores f32 numbers as a plain type, to nearest, ties to even.
void pack(DType plain, const float* src, int64_t n, std::byte* dst);

}  // namespace qwench
