#pragma once

#include <cstdint>

#include "kernels/amx.h"

namespace qwench {

/// Where the bytes of quantized activations lie for products by tiles: [row / 16][block of 32][plane][row %
/// 16][32]. A block's bytes are in the order of ByteRows. Activations of 16 bits have two planes, low bytes
/// and high bytes, those of 8 bits one.
struct ActivationTiles {
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kBlock = 32;
  static constexpr int64_t kPlaneBytes = kRows * kBlock;

  /// Rows that quantized activations must have room for: products by tiles read the scales of whole tiles.
  static int64_t rows_with_room(int64_t rows) {
    return amx_available() ? (rows + kRows - 1) / kRows * kRows : rows;
  }
  /// Of all tiles of `rows` rows of `blocks` blocks; 0 where this CPU has no AMX.
  static int64_t bytes(int64_t rows, int64_t blocks, int64_t planes) {
    return amx_available() ? rows_with_room(rows) * blocks * planes * kBlock : 0;
  }
  /// From the first byte to those of plane 0 of a row's first block; blocks are planes * kPlaneBytes apart.
  static int64_t offset(int64_t row, int64_t blocks, int64_t planes) {
    return row / kRows * blocks * planes * kPlaneBytes + row % kRows * kBlock;
  }
};

}  // namespace qwench
