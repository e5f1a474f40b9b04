#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qwench {

/// Weights of bf16 in three quarters of their bytes, exactly. The high byte of a number (its sign and the
/// upper 7 bits of the exponent) takes few values within a matrix: 4 bits say which of 16 it is, the low byte
/// is kept as it is. Numbers with another high byte are outliers, listed aside.
///
/// Panels of 16 rows as in plain_panels.h. A panel begins with a header of 64 bytes: the table of its 16 most
/// frequent high bytes, then (32 bits each) which outlier is its first and how many it has. Lines of 96 bytes
/// follow, 4 numbers of each row: 64 low bytes, then 32 bytes of indices, byte i holding that of low byte i
/// in its low 4 bits and that of low byte i + 32 above. Number k of row r of a line is low byte r / 4 * 16 +
/// k / 2 * 8 + r % 4 * 2 + k % 2: bytes of low and high halves interleaved are pairs of bf16, a row in each
/// 32 bits.
struct PackedOutlier {
  uint32_t at = 0;  // in its panel: line * 64 + low byte
  uint32_t high = 0;
};

inline constexpr int64_t kPackedLineBytes = 96;
inline constexpr int64_t kPackedHeader = 64;
inline constexpr int64_t kPackedLineNumbers = 4;  // of each row

/// `cols` is a multiple of 4 and below 2^26 wherever a matrix is packed.
inline bool can_pack_bf16(int64_t cols) { return cols % kPackedLineNumbers == 0 && cols < int64_t{1} << 26; }
inline int64_t packed_panel_bytes(int64_t cols) {
  return (kPackedHeader + cols / kPackedLineNumbers * kPackedLineBytes + 63) / 64 * 64;
}
uint64_t packed_panels_bytes(uint64_t rows, uint64_t cols);

/// Where one panel's numbers are outliers: the share of them that the table leaves out.
double packed_outlier_share(const std::byte* matrix, int64_t rows, int64_t cols, int64_t panel);

/// Packs rows [begin, end) of the bf16 matrix at `matrix`; begin is a multiple of 16, end too or `rows`.
/// Outliers are appended, and headers count from the first of them.
void pack_bf16(const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin, int64_t end,
               std::byte* panels, std::vector<PackedOutlier>& outliers);

/// Adds `by` to the headers' first outliers, of the panels of rows [begin, end).
void move_packed_outliers(std::byte* panels, int64_t cols, int64_t begin, int64_t end, uint32_t by);

/// A panel as products read it.
struct PackedPanel {
  const uint8_t* table = nullptr;
  const uint8_t* lines = nullptr;
  const PackedOutlier* outliers = nullptr;  // ascending
  const PackedOutlier* outliers_end = nullptr;
};
PackedPanel packed_panel(const std::byte* panels, const PackedOutlier* outliers, int64_t cols, int64_t panel);

/// The numbers of row `row`, out[cols]: the bits of bf16.
void unpack_bf16_row(const std::byte* panels, const PackedOutlier* outliers, int64_t cols, int64_t row,
                     uint16_t* out);

}  // namespace qwench
