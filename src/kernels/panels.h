#pragma once

#include <cstddef>
#include <cstdint>

#include "qwench/dtype.h"

namespace qwench {

/// Quantized weights in the layout that products want: panels of 8 rows (columns of the output) side by side,
/// the same bits as in the rows of the file in another order.
///
/// A panel holds first the quants of its rows, in parts of 32 along a row, then the scales of its blocks; it
/// is filled up to a multiple of 64 bytes. Rows that fill no panel are followed by copies of the last. A
/// quant has B bits (2, 3, 4, 5, 6 or 8), unsigned. A part is B vectors of 16 lanes of 16 bits: lane 2 j + i
/// belongs to row j and holds quants k = 2 p + i of some pairs p < 16, in fields of B bits from the lowest
/// up:
///
///   2, 4 bits     vector v holds the pairs from v * 16 / B on
///   8 bits        vector v holds the pairs v / 2 * 4 + v % 2 and the second after it, as masked bytes of 4
///   bits
///                 would
///   3 bits        the same, 5 pairs a vector; bit b of pair 15 is the highest bit of vector b
///   5 bits        four vectors as for 4 bits; the fifth holds the highest bit of pair p as bit p % 4 / 2 * 8
///   +
///                 p / 4 * 2 + p % 2 of a lane
///   6 bits        two pairs a vector; three vectors hold 6 pairs and in their highest 4 bits two more: the
///                 low 4 bits of the 7th in the first, of the 8th in the second, the high 2 of both in the
///                 third
///
/// Thus one shift and one mask give a vector of 16-bit numbers to multiply with two numbers of x, without
/// moving any between lanes.
inline constexpr int64_t kPanelRows = 8;

/// Bytes of all panels of a matrix of a quantized type; cols is a multiple of its block size.
uint64_t panel_bytes(DType quantized, uint64_t rows, uint64_t cols);

/// Packs rows [begin, end) of the matrix `rows` x `cols` at `matrix` into its panels at `panels`; begin is a
/// multiple of kPanelRows, end too or `rows`.
void pack_panels(DType quantized, const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin,
                 int64_t end, std::byte* panels);

/// The values of row `row`, out[cols]: those of unpack, bit for bit.
void unpack_panel_row(DType quantized, const std::byte* panels, int64_t cols, int64_t row, float* out);

}  // namespace qwench
