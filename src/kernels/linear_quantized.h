#pragma once

#include "kernels/linear.h"

namespace qwench {

/// `linear` for quantized weights: columns [begin, end) of y, from args.quantized instead of args.x.
///
/// For each output, with exact sums of products of whole numbers within a block of 32 (or of 16, where the
/// type has a scale for each 16): acc = fma(sum, scale_w * scale_x, acc), block by block in ascending order,
/// each followed by acc = fma(min_w, sum of x, acc) for types with minima; the bias last.
void linear_quantized(const LinearArgs& args, int64_t begin, int64_t end, float* scratch);

/// Up to so many rows of x, weights are used as they are unpacked; for more it pays to keep them unpacked.
inline constexpr int64_t kFewRows = 8;
/// The most numbers of x, rows * cols, for which that is done: sums of them lie in scratch memory.
inline constexpr int64_t kMostOfFewRows = kLinearScratch * 16;

/// The same for at most kFewRows rows and kMostOfFewRows numbers of x.
void linear_quantized_few(const LinearArgs& args, int64_t begin, int64_t end, float* scratch);

}  // namespace qwench
