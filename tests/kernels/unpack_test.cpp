#include "kernels/unpack.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "isas.h"
#include "kernels/half.h"

namespace qwench {
namespace {

using test::for_each_isa;

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// NaN aside, bit for bit.
void expect_same(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << ": " << found[i] << ", expected " << expected[i];
  }
}

TEST(Unpack, EqualsGgufReferenceBitForBit) {
  int types = 0;
  for (const DType dtype : test::all_dtypes()) {
    if (!is_quantized(dtype)) continue;
    SCOPED_TRACE(std::string(name(dtype)));
    const std::string base = std::string(QWENCH_TEST_DATA) + "/quant/" + std::string(name(dtype));
    const std::vector<char> blocks = read_file(base + ".blocks");
    const std::vector<char> values = read_file(base + ".f32");
    std::vector<float> expected(values.size() / sizeof(float));
    ASSERT_EQ(expected.size(), 2048U);
    ASSERT_EQ(blocks.size(), bytes_of(dtype, expected.size()));
    std::memcpy(expected.data(), values.data(), values.size());
    const auto* row = reinterpret_cast<const std::byte*>(blocks.data());
    std::vector<float> found(expected.size());
    unpack_reference(dtype, row, 0, 2048, found.data());
    expect_same(found, expected);
    for_each_isa([&](const std::string&) {
      std::fill(found.begin(), found.end(), -1.0F);
      unpack(dtype, row, 0, 2048, found.data());
      expect_same(found, expected);
    });
    ++types;
  }
  std::printf("quantized types equal to gguf: %d of 11\n", types);
  EXPECT_EQ(types, 11);
}

TEST(Unpack, TakesAnyPartOfARowAtAnyAddress) {
  for (const DType dtype : test::all_dtypes()) {
    SCOPED_TRACE(std::string(name(dtype)));
    const int64_t block = is_quantized(dtype) ? traits(dtype).block_size : 7;
    const std::vector<std::byte> bytes = test::random_weights(dtype, 9 * block, 3);
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
    std::vector<float> expected(static_cast<size_t>(5 * block));
    unpack_reference(dtype, bytes.data(), 2 * block, 5 * block, expected.data());
    for_each_isa([&](const std::string&) {
      std::vector<float> found(expected.size());
      unpack(dtype, shifted.data() + 1, 2 * block, 5 * block, found.data());
      expect_same(found, expected);
    });
  }
}

TEST(Unpack, EveryHalfHasItsExactValue) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  const auto* row = reinterpret_cast<const std::byte*>(halves.data());
  for (const uint16_t half : halves) {
    const int exponent = half >> 10 & 31;
    const double mantissa = half & 1023;
    double expected = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) expected = mantissa == 0 ? INFINITY : NAN;
    if ((half & 0x8000) != 0) expected = -expected;
    const float found = f16_to_f32(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << half;
    } else {
      ASSERT_EQ(found, expected) << half;
      ASSERT_EQ(std::signbit(found), std::signbit(expected)) << half;
      ASSERT_EQ(f32_to_f16(found), half);
    }
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<float> expected(halves.size());
    unpack_reference(dtype, row, 0, 65536, expected.data());
    for_each_isa([&](const std::string&) {
      std::vector<float> found(halves.size());
      unpack(dtype, row, 0, 65536, found.data());
      expect_same(found, expected);
    });
  }
}

// Values at, just below and just above the middle between two halves, for all exponents.
std::vector<float> values_around_ties() {
  std::vector<float> values{0.0F,     -0.0F,      INFINITY, -INFINITY, NAN,
                            65504.0F, 65519.996F, 65520.0F, 1e-45F,    3e38F};
  for (uint32_t high = 0; high < 0x7F800000U; high += 0x00123000U) {
    for (const uint32_t low : {0x0000U, 0x0FFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(high | low));
      values.push_back(-std::bit_cast<float>(high | low));
    }
  }
  return values;
}

TEST(Pack, RoundsToTheNearestAndTiesToEven) {
  const std::vector<float> values = values_around_ties();
  const auto count = static_cast<int64_t>(values.size());
  for_each_isa([&](const std::string&) {
    std::vector<uint16_t> halves(values.size());
    for (const DType dtype : {DType::f16, DType::bf16}) {
      pack(dtype, values.data(), count, reinterpret_cast<std::byte*>(halves.data()));
      const auto to_float = dtype == DType::f16 ? f16_to_f32 : bf16_to_f32;
      for (size_t i = 0; i < values.size(); ++i) {
        const float value = values[i];
        const float found = to_float(halves[i]);
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(found));
          continue;
        }
        ASSERT_EQ(std::signbit(found), std::signbit(value));
        if (std::isinf(found)) {
          // The first value that has no finite half: the middle between the largest and its successor.
          ASSERT_GE(std::fabs(value), dtype == DType::f16 ? 65520.0F : 0x1.FFp127F);
          continue;
        }
        const uint16_t magnitude = halves[i] & 0x7FFFU;
        const double error = std::fabs(double{found} - double{value});
        for (const int step : {-1, 1}) {
          if (magnitude == 0 && step < 0) continue;
          const double other = to_float(static_cast<uint16_t>(halves[i] + step));
          if (std::isinf(other)) continue;
          const double other_error = std::fabs(other - double{value});
          ASSERT_LE(error, other_error) << value;
          if (error == other_error) {
            ASSERT_EQ(halves[i] & 1, 0) << value << " is a tie";
          }
        }
      }
    }
  });
}

TEST(Pack, KeepsF32) {
  const std::vector<float> values{1.5F, -0.0F, 1e-45F, 3e38F, INFINITY};
  std::vector<float> found(values.size());
  pack(DType::f32, values.data(), 5, reinterpret_cast<std::byte*>(found.data()));
  expect_same(found, values);
}

}  // namespace
}  // namespace qwench
