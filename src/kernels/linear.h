#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/byte_rows.h"
#include "kernels/packed_bf16.h"
#include "kernels/quantized_rows.h"
#include "qwench/dtype.h"

namespace qwench {

/// y[m, n] = sum over k of x[m, k] w[n, k] + bias[n], for the columns [begin, end) of y.
///
/// The order of the sum is fixed, and the same for one row and for many (docs/numerics.md). Quantized
/// weights: see linear_quantized. Plain ones: k is cut into chunks of kLinearChunk; a chunk's sum is one
/// chain of fused multiply-adds in ascending order; the chunks' sums are added in ascending order, and the
/// bias last. How plain weights lie (panels, rows, packed) changes no bit.
struct LinearArgs {
  const float* x = nullptr;  // [rows, cols], each row readable and zero up to a multiple of 16
  int64_t x_stride = 0;      // floats
  const QuantizedRows* quantized = nullptr;  // the same rows of x, read instead where w is quantized, or
  const ByteRows* bytes = nullptr;           // these where they are given: multiplied_by_bytes(dtype)
  int64_t rows = 0;
  int64_t cols = 0;              // k; a multiple of the weight type's block size
  DType dtype = DType::f32;      // of w
  const std::byte* w = nullptr;  // [n, cols] in panels: plain_panels.h, or panels.h for quantized types
  bool in_rows = false;          // w is of a plain type, [outs, cols] row after row instead, unaligned
  int64_t outs = 0;              // read where in_rows
  bool packed = false;           // w is bf16 as packed_bf16.h has it, with
  const PackedOutlier* outliers = nullptr;
  const float* bias = nullptr;  // [n], may be null
  float* y = nullptr;           // [rows, n], not overlapping x
  int64_t y_stride = 0;         // floats
};

inline constexpr int64_t kLinearChunk = 256;
/// Floats of scratch memory for each thread: 768 KB, of which kernels for CPUs with smaller L2 caches use
/// less than 256.
inline constexpr int64_t kLinearScratch = 768 * kLinearChunk;

void linear(const LinearArgs& args, int64_t begin, int64_t end, float* scratch);

}  // namespace qwench
