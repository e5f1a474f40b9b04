#include "kernels/packed_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "isas.h"
#include "kernels/linear.h"
#include "kernels/plain_panels.h"

namespace qwench {
namespace {

using test::for_each_isa;

struct Case {
  const char* name;
  std::vector<uint16_t> (*make)(size_t count);
};

std::vector<uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> out(values.size());
  pack(DType::bf16, values.data(), static_cast<int64_t>(values.size()),
       reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<uint16_t> usual(size_t count) { return as_bf16(test::random_floats(count, 1, 0.02F)); }

// Every third number is 0 or -0, and every seventh smaller or larger than the others by powers of two.
std::vector<uint16_t> odd(size_t count) {
  std::vector<float> values = test::random_floats(count, 2, 0.02F);
  for (size_t i = 0; i < count; ++i) {
    if (i % 3 == 0) values[i] = i % 2 == 0 ? 0.0F : -0.0F;
    if (i % 7 == 0) values[i] = std::ldexp(values[i], static_cast<int>(i * 31 % 90) - 60);
  }
  return as_bf16(values);
}

// Every high byte is about as frequent as every other: fifteen of sixteen numbers are outliers.
std::vector<uint16_t> any_exponent(size_t count) {
  std::mt19937 generator(3);
  std::vector<uint16_t> out(count);
  for (uint16_t& v : out) v = static_cast<uint16_t>(generator() & 0xBFFFU);  // below 2
  return out;
}

std::vector<uint16_t> zeros(size_t count) { return std::vector<uint16_t>(count); }

constexpr Case kCases[] = {{"usual weights", usual},
                           {"zeros and outliers", odd},
                           {"any exponent", any_exponent},
                           {"all zero", zeros}};

struct Packed {
  Packed(const std::vector<uint16_t>& matrix, int64_t rows, int64_t cols)
      : panels(packed_panels_bytes(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols)),
               std::byte{0xAA}) {
    pack_bf16(reinterpret_cast<const std::byte*>(matrix.data()), rows, cols, 0, rows, panels.data(),
              outliers);
  }
  std::vector<std::byte> panels;
  std::vector<PackedOutlier> outliers;
};

TEST(PackedBf16, HoldsEveryBit) {
  size_t outliers = 0;
  for (const Case& c : kCases) {
    for (const int64_t rows : {2, 16, 37}) {
      for (const int64_t cols : {4, 64, 1028}) {
        SCOPED_TRACE(std::string(c.name) + ", " + std::to_string(rows) + " rows of " + std::to_string(cols));
        const std::vector<uint16_t> matrix = c.make(static_cast<size_t>(rows * cols));
        const Packed packed(matrix, rows, cols);
        outliers += packed.outliers.size();
        std::vector<uint16_t> found(static_cast<size_t>(cols));
        for (int64_t r = 0; r < rows; ++r) {
          unpack_bf16_row(packed.panels.data(), packed.outliers.data(), cols, r, found.data());
          for (int64_t k = 0; k < cols; ++k) {
            ASSERT_EQ(found[static_cast<size_t>(k)], matrix[static_cast<size_t>(r * cols + k)])
                << "row " << r << ", column " << k;
          }
        }
      }
    }
  }
  EXPECT_GT(outliers, 50'000U);
}

TEST(PackedBf16, TakesThreeQuartersOfTheBytesOfUsualWeights) {
  constexpr int64_t kRows = 256;
  constexpr int64_t kCols = 1024;
  const Packed packed(usual(kRows * kCols), kRows, kCols);
  const size_t bytes = packed.panels.size() + packed.outliers.size() * sizeof(PackedOutlier);
  EXPECT_LT(static_cast<double>(bytes), 0.76 * kRows * kCols * 2);
}

TEST(PackedBf16, PackedInPiecesItIsTheSame) {
  constexpr int64_t kRows = 53;
  constexpr int64_t kCols = 128;
  const std::vector<uint16_t> matrix = odd(kRows * kCols);
  const auto* bytes = reinterpret_cast<const std::byte*>(matrix.data());
  const Packed whole(matrix, kRows, kCols);
  std::vector<std::byte> panels(whole.panels.size());
  std::vector<PackedOutlier> first;
  std::vector<PackedOutlier> second;
  pack_bf16(bytes, kRows, kCols, 32, kRows, panels.data(), second);
  pack_bf16(bytes, kRows, kCols, 0, 32, panels.data(), first);
  move_packed_outliers(panels.data(), kCols, 32, kRows, static_cast<uint32_t>(first.size()));
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(first.size(), whole.outliers.size());
  std::vector<uint16_t> found(kCols);
  for (int64_t r = 0; r < kRows; ++r) {
    unpack_bf16_row(panels.data(), first.data(), kCols, r, found.data());
    EXPECT_EQ(std::memcmp(found.data(), matrix.data() + r * kCols, kCols * 2), 0) << "row " << r;
  }
}

TEST(PackedBf16, ProductsAreThoseOfBf16BitForBit) {
  constexpr int64_t kOuts = 37;
  constexpr int64_t kMostRows = 70;
  std::vector<float> scratch(static_cast<size_t>(kLinearScratch));
  for (const Case& c : kCases) {
    for (const int64_t cols : {4, 252, 1028}) {
      SCOPED_TRACE(std::string(c.name) + ", " + std::to_string(cols) + " columns");
      const std::vector<uint16_t> matrix = c.make(static_cast<size_t>(kOuts * cols));
      const auto* bytes = reinterpret_cast<const std::byte*>(matrix.data());
      const Packed packed(matrix, kOuts, cols);
      std::vector<std::byte> plain(plain_panels_bytes(DType::bf16, kOuts, static_cast<uint64_t>(cols)));
      pack_plain_panels(DType::bf16, bytes, kOuts, cols, 0, kOuts, plain.data());
      const int64_t stride = (cols + 15) / 16 * 16;
      std::vector<float> x(static_cast<size_t>(kMostRows * stride));
      const std::vector<float> values = test::random_floats(static_cast<size_t>(kMostRows * cols), 5);
      for (int64_t r = 0; r < kMostRows; ++r)
        std::copy_n(values.begin() + r * cols, cols, x.begin() + r * stride);
      for_each_isa([&](const std::string&) {
        for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 13, 50, 70}) {
          LinearArgs args;
          args.x = x.data();
          args.x_stride = stride;
          args.rows = rows;
          args.cols = cols;
          args.dtype = DType::bf16;
          args.y_stride = kOuts;
          std::vector<float> expected(static_cast<size_t>(rows * kOuts), NAN);
          std::vector<float> found = expected;
          args.w = plain.data();
          args.y = expected.data();
          linear(args, 0, kOuts, scratch.data());
          args.w = packed.panels.data();
          args.packed = true;
          args.outliers = packed.outliers.data();
          args.y = found.data();
          linear(args, 0, 19, scratch.data());
          linear(args, 19, kOuts, scratch.data());
          ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
              << rows << " rows";
        }
      });
    }
  }
}

TEST(PackedBf16, KnowsWhatIsNotWorthIt) {
  constexpr int64_t kRows = 32;
  constexpr int64_t kCols = 512;
  const auto share = [&](const std::vector<uint16_t>& matrix) {
    return packed_outlier_share(reinterpret_cast<const std::byte*>(matrix.data()), kRows, kCols, 1);
  };
  EXPECT_LT(share(usual(kRows * kCols)), 0.001);
  EXPECT_GT(share(any_exponent(kRows * kCols)), 0.8);
  EXPECT_EQ(share(zeros(kRows * kCols)), 0.0);
}

}  // namespace
}  // namespace qwench
