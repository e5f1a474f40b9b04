#include "kernels/plain_panels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "isas.h"

namespace qwench {
namespace {

using test::for_each_isa;

constexpr DType kPlain[] = {DType::f32, DType::f16, DType::bf16};

// Any bits at all: packing looks at none.
std::vector<std::byte> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(generator() & 0xFFU);
  return bytes;
}

std::vector<std::byte> packed(DType dtype, const std::vector<std::byte>& matrix, int64_t rows, int64_t cols) {
  std::vector<std::byte> panels(
      plain_panels_bytes(dtype, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols)), std::byte{0xAA});
  pack_plain_panels(dtype, matrix.data(), rows, cols, 0, rows, panels.data());
  return panels;
}

TEST(PlainPanels, HoldTheBitsOfEveryRow) {
  for (const DType dtype : kPlain) {
    for (const int64_t rows : {2, 16, 21, 48}) {
      for (const int64_t cols : {1, 2, 31, 32, 37, 300}) {
        SCOPED_TRACE(std::string(name(dtype)) + ", " + std::to_string(rows) + " rows of " +
                     std::to_string(cols));
        const std::vector<std::byte> matrix =
            random_bytes(bytes_of(dtype, static_cast<uint64_t>(rows * cols)), 3);
        const auto row_bytes = static_cast<size_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
        const auto width = static_cast<size_t>(bytes_of(dtype, 1));
        for_each_isa([&](const std::string&) {
          const std::vector<std::byte> panels = packed(dtype, matrix, rows, cols);
          std::vector<std::byte> found(row_bytes);
          for (int64_t r = 0; r < rows; ++r) {
            // In two pieces, of which the second begins anywhere.
            const int64_t first = cols / 3;
            plain_panel_row(dtype, panels.data(), cols, r, 0, first, found.data());
            plain_panel_row(dtype, panels.data(), cols, r, first, cols - first,
                            found.data() + static_cast<size_t>(first) * width);
            ASSERT_EQ(
                std::memcmp(found.data(), matrix.data() + static_cast<size_t>(r) * row_bytes, row_bytes), 0)
                << "row " << r;
          }
        });
      }
    }
  }
}

TEST(PlainPanels, AreTheSameWhicheverInstructionSetPacksThemAndInWhatPieces) {
  constexpr int64_t kPlainRows = 53;
  constexpr int64_t kPlainCols = 75;
  for (const DType dtype : kPlain) {
    SCOPED_TRACE(std::string(name(dtype)));
    const std::vector<std::byte> matrix = random_bytes(bytes_of(dtype, kPlainRows * kPlainCols), 4);
    const std::vector<std::byte> expected = packed(dtype, matrix, kPlainRows, kPlainCols);
    for_each_isa([&](const std::string&) {
      EXPECT_EQ(packed(dtype, matrix, kPlainRows, kPlainCols), expected);
      std::vector<std::byte> pieces(expected.size());
      pack_plain_panels(dtype, matrix.data(), kPlainRows, kPlainCols, 32, kPlainRows, pieces.data());
      pack_plain_panels(dtype, matrix.data(), kPlainRows, kPlainCols, 0, 32, pieces.data());
      EXPECT_EQ(pieces, expected);
    });
  }
}

TEST(PlainPanels, AreFilledUpWithZeros) {
  const std::vector<std::byte> matrix(bytes_of(DType::bf16, 3 * 5), std::byte{0xFF});
  const std::vector<std::byte> panels = packed(DType::bf16, matrix, 3, 5);
  ASSERT_EQ(panels.size(), 3U * 64U);
  size_t zeros = 0;
  for (const std::byte b : panels) zeros += b == std::byte{0} ? 1 : 0;
  EXPECT_EQ(zeros, panels.size() - matrix.size());
}

}  // namespace
}  // namespace qwench
