#pragma once

#include <cstddef>
#include <cstdint>

#include "qwench/dtype.h"

namespace qwench {

/// Activations of 8 bits, for products with the quantized weights that have instructions for bytes
/// (multiplied_by_bytes); QuantizedRows for the others. Blocks of 32 along a row share a scale: x[k] =
/// value * scales[k / 32], values within [-127, 127].
///
/// Each 8 values of a row lie in the order 0 4 1 5 2 6 3 7, which is that of the weights' bytes once the
/// fields of a panel (panels.h) are masked.
struct ByteRows {
  static constexpr int64_t kBlock = 32;
  static constexpr int kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

  int8_t* values = nullptr;  // [rows, stride]
  float* scales = nullptr;   // [rows, stride / 32]
  float* totals = nullptr;   // [rows, stride / 32]: the sum of the block's values, a whole number
  float* sums = nullptr;     // [rows, stride / 32]: scale * total
  int64_t stride = 0;        // a multiple of 32
  /// The values once more for tiles (ActivationTiles); null without AMX.
  uint8_t* tiles = nullptr;

  /// Bytes for `rows` rows of `cols` activations; both factors below 2^31.
  static uint64_t bytes(int64_t rows, int64_t cols);
  /// In `memory` of that many bytes, aligned to 64.
  static ByteRows in(std::byte* memory, int64_t rows, int64_t cols);
};

/// Quantizes row r: x[cols], cols a multiple of 32. A block's scale is its largest magnitude / 127; values
/// are rounded to nearest, ties to even. A block with a number that is not finite gets the scale NaN, a block
/// of magnitudes below 2^-100 the values 0.
void quantize_row_to_bytes(const float* x, int64_t cols, int64_t r, const ByteRows& rows);

/// Whether weights of this quantized type are multiplied with ByteRows: where set_activation_bits(8) asks for
/// it, those of 4 and 5 bits, whose products with bytes cost half of those with 16 bits, and on an
/// instruction set with VNNI q8_0 too.
bool multiplied_by_bytes(DType quantized);

/// Whether activations are rounded to bf16, of 8 bits too, before products with weights of this type: where
/// set_activation_bits(8) asks for it and kernels multiply tiles of bf16 (amx.h), those of bf16 and f16.
bool multiplied_by_bf16(DType dtype);

/// 16, the default, or 8: what activations are quantized to where there is the choice. 8 bits take as little
/// as half of the time and have an error 256 times larger. For the whole process; not while kernels run.
/// Throws Error (invalid_argument) for other numbers.
void set_activation_bits(int bits);
int activation_bits();

/// set_activation_bits(the environment's QWENCH_ACTIVATION_BITS) where that is set and nothing was called
/// before.
void set_activation_bits_from_environment();

}  // namespace qwench
