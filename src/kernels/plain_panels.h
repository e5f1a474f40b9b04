#pragma once

#include <cstddef>
#include <cstdint>

#include "qwench/dtype.h"

namespace qwench {

/// Plain weights (f32, f16, bf16) in the layout that products want: panels of 16 rows (columns of the output)
/// side by side, the same bits as in the rows of the file in another order. A panel is a sequence of lines of
/// 64 bytes along k:
///
///   f32   number k of each of the 16 rows
///   bf16  numbers 2 k and 2 k + 1 of each row side by side, so that a shift and a mask widen them
///   f16   numbers 2 k of the 16 rows, then numbers 2 k + 1
///
/// Rows that fill no panel are followed by rows of zeros, an odd number of columns by a zero.
inline constexpr int64_t kPlainPanelRows = 16;
inline constexpr int64_t kPlainLineBytes = 64;

/// Numbers of a row in a line.
inline int64_t plain_line_numbers(DType plain) { return plain == DType::f32 ? 1 : 2; }

/// Bytes of one panel, and of all panels of a matrix.
inline int64_t plain_panel_bytes(DType plain, int64_t cols) {
  const int64_t numbers = plain_line_numbers(plain);
  return (cols + numbers - 1) / numbers * kPlainLineBytes;
}
inline uint64_t plain_panels_bytes(DType plain, uint64_t rows, uint64_t cols) {
  const uint64_t panels = (rows + kPlainPanelRows - 1) / kPlainPanelRows;
  return panels * static_cast<uint64_t>(plain_panel_bytes(plain, static_cast<int64_t>(cols)));
}

/// Packs rows [begin, end) of the matrix `rows` x `cols` at `matrix` into its panels at `panels`, which are
/// aligned to 16 bytes; begin is a multiple of kPlainPanelRows, end too or `rows`.
void pack_plain_panels(DType plain, const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin,
                       int64_t end, std::byte* panels);

/// Numbers [begin, begin + n) of row `row` as they are stored, at `out`.
void plain_panel_row(DType plain, const std::byte* panels, int64_t cols, int64_t row, int64_t begin,
                     int64_t n, std::byte* out);

}  // namespace qwench
