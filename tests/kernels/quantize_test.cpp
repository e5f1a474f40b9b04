#include "kernels/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "isas.h"

namespace qwench {
namespace {

std::vector<float> there_and_back(DType dtype, const std::vector<float>& x) {
  std::vector<std::byte> blocks(bytes_of(dtype, x.size()));
  quantize(dtype, x.data(), static_cast<int64_t>(x.size()), blocks.data());
  std::vector<float> back(x.size());
  unpack_reference(dtype, blocks.data(), 0, static_cast<int64_t>(x.size()), back.data());
  return back;
}

double relative_error(const std::vector<float>& x, const std::vector<float>& back) {
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += std::pow(double{x[i]} - back[i], 2);
    size += std::pow(double{x[i]}, 2);
  }
  return std::sqrt(error / size);
}

constexpr DType kTypes[] = {DType::q8_0, DType::q4_0, DType::q4_k};

TEST(Quantize, MakesTheTypesItSays) {
  for (const DType dtype : test::all_dtypes()) {
    const bool made = std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes);
    EXPECT_EQ(can_quantize(dtype), made) << name(dtype);
  }
}

// A normal distribution in 8 bits of range 2.2 sigma has an error of 0.5 %; 4 bits give a tenth.
TEST(Quantize, LosesAsMuchAsItsBitsDo) {
  for (const float scale : {1e-3F, 1.0F, 100.0F}) {
    const std::vector<float> x = test::random_floats(64 * 256, 3, scale);
    EXPECT_LT(relative_error(x, there_and_back(DType::q8_0, x)), 0.006);
    EXPECT_LT(relative_error(x, there_and_back(DType::q4_0, x)), 0.10);
    EXPECT_LT(relative_error(x, there_and_back(DType::q4_k, x)), 0.085);
  }
}

TEST(Quantize, WhatABlockCanHoldIsKeptExactly) {
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 15) - 8) * 0.5F;
  EXPECT_EQ(there_and_back(DType::q4_0, x), x);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 255) - 127) * 0.25F;
  for (size_t i = 0; i < x.size(); i += 32) x[i] = 127 * 0.25F;
  EXPECT_EQ(there_and_back(DType::q8_0, x), x);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 16) * 63 - 63 * 4);
  EXPECT_EQ(there_and_back(DType::q4_k, x), x);
}

TEST(Quantize, ZerosStayZerosAndExtremesStayFinite) {
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(std::string(name(dtype)));
    const std::vector<float> zeros(512, 0.0F);
    EXPECT_EQ(there_and_back(dtype, zeros), zeros);
    for (const float extreme : {1e38F, -1e38F, 1e-40F}) {
      std::vector<float> x = test::random_floats(256, 2, 0.1F);
      x[77] = extreme;
      for (const float value : there_and_back(dtype, x)) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST(Quantize, ABlockThatIsNotFiniteIsNoNumber) {
  for (const DType dtype : kTypes) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> x(512, 1.0F);
      x[300] = bad;
      const std::vector<float> back = there_and_back(dtype, x);
      EXPECT_TRUE(std::isnan(back[300])) << name(dtype);
      EXPECT_NEAR(back[0], 1.0F, 0.01F) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace qwench
