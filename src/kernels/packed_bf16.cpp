#include "kernels/packed_bf16.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "kernels/half.h"
#include "kernels/plain_panels.h"

namespace qwench {
namespace {

constexpr int64_t kRows = kPlainPanelRows;
constexpr int kTable = 16;
constexpr uint8_t kNone = 0xFF;

// Of number k of row r of a line.
constexpr int64_t slot_of(int64_t r, int64_t k) { return r / 4 * 16 + k / 2 * 8 + r % 4 * 2 + k % 2; }

using Counts = std::array<uint32_t, 256>;

// How often each high byte occurs in the panel's rows.
Counts count_high(const uint8_t* matrix, int64_t rows, int64_t cols, int64_t first) {
  // Four counts side by side: equal neighbours would wait for each other.
  std::array<Counts, 4> counts{};
  for (int64_t r = first; r < std::min(first + kRows, rows); ++r) {
    const uint8_t* row = matrix + r * cols * 2;
    for (int64_t k = 0; k < cols; k += 4) {
      for (int64_t i = 0; i < 4; ++i) ++counts[static_cast<size_t>(i)][row[(k + i) * 2 + 1]];
    }
  }
  for (size_t i = 1; i < 4; ++i) {
    for (size_t high = 0; high < 256; ++high) counts[0][high] += counts[i][high];
  }
  return counts[0];
}

std::array<uint8_t, kTable> most_frequent(const Counts& counts) {
  std::array<uint8_t, 256> order;
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::partial_sort(order.begin(), order.begin() + kTable, order.end(), [&](uint8_t a, uint8_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : a < b;
  });
  std::array<uint8_t, kTable> table;
  std::copy_n(order.begin(), kTable, table.begin());
  return table;
}

void pack_panel(const uint8_t* matrix, int64_t rows, int64_t cols, int64_t first, uint8_t* panel,
                std::vector<PackedOutlier>& outliers) {
  const std::array<uint8_t, kTable> table = most_frequent(count_high(matrix, rows, cols, first));
  std::array<uint8_t, 256> index;
  index.fill(kNone);
  for (int i = 0; i < kTable; ++i) index[table[static_cast<size_t>(i)]] = static_cast<uint8_t>(i);
  const size_t outliers_before = outliers.size();
  const int64_t count = std::min(kRows, rows - first);
  uint8_t* line = panel + kPackedHeader;
  std::array<uint8_t, 64> indices{};
  for (int64_t k = 0; k < cols; k += kPackedLineNumbers, line += kPackedLineBytes) {
    const size_t before = outliers.size();
    std::memset(line, 0, 64);
    for (int64_t r = 0; r < count; ++r) {
      const uint8_t* from = matrix + ((first + r) * cols + k) * 2;
      for (int64_t i = 0; i < kPackedLineNumbers; ++i) {
        const int64_t slot = slot_of(r, i);
        line[slot] = from[2 * i];
        uint8_t which = index[from[2 * i + 1]];
        if (which == kNone) {
          outliers.push_back({static_cast<uint32_t>(k / kPackedLineNumbers * 64 + slot), from[2 * i + 1]});
          which = 0;
        }
        indices[static_cast<size_t>(slot)] = which;
      }
    }
    std::sort(outliers.begin() + static_cast<std::ptrdiff_t>(before), outliers.end(),
              [](const PackedOutlier& a, const PackedOutlier& b) { return a.at < b.at; });
    for (size_t i = 0; i < 32; ++i) line[64 + i] = static_cast<uint8_t>(indices[i] | indices[i + 32] << 4);
  }
  std::memset(panel, 0, kPackedHeader);
  std::memcpy(panel, table.data(), table.size());
  const auto begin = static_cast<uint32_t>(outliers_before);
  const auto size = static_cast<uint32_t>(outliers.size() - outliers_before);
  std::memcpy(panel + 16, &begin, sizeof(begin));
  std::memcpy(panel + 20, &size, sizeof(size));
}

}  // namespace

uint64_t packed_panels_bytes(uint64_t rows, uint64_t cols) {
  return (rows + kRows - 1) / kRows * static_cast<uint64_t>(packed_panel_bytes(static_cast<int64_t>(cols)));
}

double packed_outlier_share(const std::byte* matrix, int64_t rows, int64_t cols, int64_t panel) {
  const Counts counts = count_high(reinterpret_cast<const uint8_t*>(matrix), rows, cols, panel * kRows);
  uint64_t all = 0;
  for (const uint32_t n : counts) all += n;
  uint64_t held = 0;
  for (const uint8_t high : most_frequent(counts)) held += counts[high];
  return all == 0 ? 0 : static_cast<double>(all - held) / static_cast<double>(all);
}

void pack_bf16(const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin, int64_t end,
               std::byte* panels, std::vector<PackedOutlier>& outliers) {
  for (int64_t n = begin; n < end; n += kRows) {
    pack_panel(reinterpret_cast<const uint8_t*>(matrix), rows, cols, n,
               reinterpret_cast<uint8_t*>(panels) + n / kRows * packed_panel_bytes(cols), outliers);
  }
}

void move_packed_outliers(std::byte* panels, int64_t cols, int64_t begin, int64_t end, uint32_t by) {
  for (int64_t n = begin; n < end; n += kRows) {
    std::byte* at = panels + n / kRows * packed_panel_bytes(cols) + 16;
    const uint32_t first = load_unaligned<uint32_t>(reinterpret_cast<const uint8_t*>(at)) + by;
    std::memcpy(at, &first, sizeof(first));
  }
}

PackedPanel packed_panel(const std::byte* panels, const PackedOutlier* outliers, int64_t cols,
                         int64_t panel) {
  const auto* header = reinterpret_cast<const uint8_t*>(panels) + panel * packed_panel_bytes(cols);
  PackedPanel out;
  out.table = header;
  out.lines = header + kPackedHeader;
  out.outliers = outliers + load_unaligned<uint32_t>(header + 16);
  out.outliers_end = out.outliers + load_unaligned<uint32_t>(header + 20);
  return out;
}

void unpack_bf16_row(const std::byte* panels, const PackedOutlier* outliers, int64_t cols, int64_t row,
                     uint16_t* out) {
  const PackedPanel panel = packed_panel(panels, outliers, cols, row / kRows);
  const int64_t r = row % kRows;
  const PackedOutlier* outlier = panel.outliers;
  const uint8_t* line = panel.lines;
  for (int64_t k = 0; k < cols; ++k) {
    const int64_t slot = slot_of(r, k % kPackedLineNumbers);
    const int64_t at = k / kPackedLineNumbers * 64 + slot;
    const int index = line[64 + slot % 32] >> (slot / 32 * 4) & 15;
    uint32_t high = panel.table[index];
    while (outlier != panel.outliers_end && outlier->at < at) ++outlier;
    if (outlier != panel.outliers_end && outlier->at == at) high = outlier->high;
    out[k] = static_cast<uint16_t>(high << 8 | line[slot]);
    if (k % kPackedLineNumbers == kPackedLineNumbers - 1) line += kPackedLineBytes;
  }
}

}  // namespace qwench
