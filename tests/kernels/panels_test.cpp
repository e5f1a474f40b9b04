#include "kernels/panels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "isas.h"

namespace qwench {
namespace {

using test::for_each_isa;

constexpr int64_t kRows = 21;
constexpr int64_t kCols = 768;

std::vector<std::byte> packed(DType dtype, const std::vector<std::byte>& matrix) {
  std::vector<std::byte> panels(panel_bytes(dtype, kRows, kCols));
  pack_panels(dtype, matrix.data(), kRows, kCols, 0, kRows, panels.data());
  return panels;
}

TEST(Panels, HoldTheValuesOfEveryTypeBitForBit) {
  int types = 0;
  for (const DType dtype : test::all_dtypes()) {
    if (!is_quantized(dtype)) continue;
    ++types;
    SCOPED_TRACE(std::string(name(dtype)));
    const std::vector<std::byte> matrix = test::random_weights(dtype, kRows * kCols, 3);
    const auto row_bytes = static_cast<int64_t>(bytes_of(dtype, kCols));
    for_each_isa([&](const std::string&) {
      const std::vector<std::byte> panels = packed(dtype, matrix);
      std::vector<float> expected(kCols);
      std::vector<float> found(kCols);
      for (int64_t r = 0; r < kRows; ++r) {
        unpack_reference(dtype, matrix.data() + r * row_bytes, 0, kCols, expected.data());
        unpack_panel_row(dtype, panels.data(), kCols, r, found.data());
        for (size_t k = 0; k < expected.size(); ++k) {
          ASSERT_EQ(std::memcmp(&found[k], &expected[k], sizeof(float)), 0)
              << "row " << r << ", column " << k << ": " << found[k] << " instead of " << expected[k];
        }
      }
    });
  }
  EXPECT_EQ(types, 11);
}

TEST(Panels, AreTheSameWhicheverInstructionSetPacksThemAndInWhatPieces) {
  for (const DType dtype : test::all_dtypes()) {
    if (!is_quantized(dtype)) continue;
    SCOPED_TRACE(std::string(name(dtype)));
    const std::vector<std::byte> matrix = test::random_weights(dtype, kRows * kCols, 4);
    const std::vector<std::byte> expected = packed(dtype, matrix);
    for_each_isa([&](const std::string&) {
      EXPECT_EQ(packed(dtype, matrix), expected);
      std::vector<std::byte> pieces(expected.size());
      pack_panels(dtype, matrix.data(), kRows, kCols, 16, kRows, pieces.data());
      pack_panels(dtype, matrix.data(), kRows, kCols, 0, 16, pieces.data());
      EXPECT_EQ(pieces, expected);
    });
  }
}

TEST(Panels, TakeNoMoreBytesThanTheRowsButForWhatFillsThemUp) {
  for (const DType dtype : test::all_dtypes()) {
    if (!is_quantized(dtype)) continue;
    for (const uint64_t cols : {256U, 1024U, 4864U}) {
      const uint64_t rows = bytes_of(dtype, 48 * cols);
      EXPECT_GE(panel_bytes(dtype, 48, cols), rows) << name(dtype);
      EXPECT_LT(panel_bytes(dtype, 48, cols), rows + 6 * 64) << name(dtype);
      EXPECT_EQ(panel_bytes(dtype, 41, cols), panel_bytes(dtype, 48, cols)) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace qwench
