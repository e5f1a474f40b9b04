#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quantized_rows.h"
#include "qwench/dtype.h"

namespace qwench {

/// y[m, n] = sum over k of x[m, k] w[n, k] + bias[n], for the columns [begin, end) of y.
///
/// The order of the sum is fixed, and the same for one row and for many (docs/numerics.md). Quantized
/// weights: see linear_quantized. Plain ones: k is cut into chunks of kLinearChunk; within a chunk each lane
/// of one vector adds its elements in ascending order, then the lanes are added by a fixed tree; the chunks'
/// sums are added in ascending order, and the bias last.
struct LinearArgs {
  const float* x = nullptr;  // [rows, cols], each row readable and zero up to a multiple of 16
  int64_t x_stride = 0;      // floats
  const QuantizedRows* quantized = nullptr;  // the same rows of x, read instead where w is quantized
  int64_t rows = 0;
  int64_t cols = 0;              // k; a multiple of the weight type's block size
  DType dtype = DType::f32;      // of w
  const std::byte* w = nullptr;  // [n, cols]: rows contiguous, or the panels (panels.h) of a quantized type
  const float* bias = nullptr;   // [n], may be null
  float* y = nullptr;            // [rows, n], not overlapping x
  int64_t y_stride = 0;          // floats
};

inline constexpr int64_t kLinearChunk = 1024;
inline constexpr int64_t kLinearPanel =
    48;  // rows of w unpacked at a time: with a chunk of each, half of a small L2
/// Floats of scratch memory that each thread needs.
inline constexpr int64_t kLinearScratch = kLinearPanel * (kLinearChunk + 16);

void linear(const LinearArgs& args, int64_t begin, int64_t end, float* scratch);

}  // namespace qwench
