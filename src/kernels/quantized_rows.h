#pragma once

#include <cstddef>
#include <cstdint>

namespace qwench {

/// Activations for products with quantized weights, in blocks of 32 along a row: x[k] = values[k] *
/// scales[k / 32], values within [-32767, 32767]. With weights of 8 bits at most, the products of a block
/// sum up exactly in 32 bits: 32 * 128 * 32767 < 2^31.
///
/// Why 16 bits and not 8 (byte_rows.h): without VNNI, those of weights that need 8 bits themselves would gain
/// nothing: 8-bit products need two multiplications for 32 numbers (pmaddubsw,
/// pmaddwd), as many as 16-bit ones (pmaddwd twice), and the error of an activation is 256 times larger.
struct QuantizedRows {
  static constexpr int64_t kBlock = 32;

  int16_t* values = nullptr;   // [rows, stride]
  float* scales = nullptr;     // [rows, stride / 32]
  float* sums = nullptr;       // [rows, stride / 32]: the sum of the block's x as quantized
  float* half_sums = nullptr;  // [rows, stride / 16]: of each 16
  int64_t stride = 0;          // a multiple of 32
  /// The values once more for tiles (ActivationTiles), low bytes and high bytes; null without AMX.
  uint8_t* tiles = nullptr;

  /// Bytes for `rows` rows of `cols` activations; both factors below 2^31.
  static uint64_t bytes(int64_t rows, int64_t cols);
  /// In `memory` of that many bytes, aligned to 64.
  static QuantizedRows in(std::byte* memory, int64_t rows, int64_t cols);
};

/// Quantizes row r: x[cols], cols a multiple of 32. A block's scale is its largest magnitude / 32767; values
/// are rounded to nearest, ties to even. A block with a number that is not finite gets the scale NaN, a block
/// of magnitudes below 2^-100 the values 0.
void quantize_row(const float* x, int64_t cols, int64_t r, const QuantizedRows& rows);

}  // namespace qwench
