#include "kernels/byte_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isas.h"
#include "quantized.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using test::for_each_isa;

TEST(ByteRows, AnActivationIsWithinHalfAStepOfItself) {
  for_each_isa([&](const std::string&) {
    for (const float scale : {1e-12F, 1.0F, 1e12F}) {
      const std::vector<float> x = test::random_floats(5 * 96, 3, scale);
      const test::Bytes b(x, 5, 96, 96);
      const std::vector<float> back = b.unpacked();
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(std::fabs(double{x[i]} - back[i]), 0.501 * double{b.rows.scales[i / 32]}) << i;
        ASSERT_LE(std::abs(int{b.rows.values[i]}), 127) << i;
      }
    }
  });
}

TEST(ByteRows, EachEightValuesLieInTheOrderOfTheWeights) {
  std::vector<float> x(32);
  for (size_t i = 0; i < 32; ++i) x[i] = static_cast<float>(i) - 127.0F;
  for_each_isa([&](const std::string&) {
    const test::Bytes b(x, 1, 32, 32);
    EXPECT_EQ(b.rows.scales[0], 1.0F);
    const std::vector<int> found(b.rows.values, b.rows.values + 8);
    EXPECT_EQ(found, (std::vector<int>{-127, -123, -126, -122, -125, -121, -124, -120}));
  });
}

TEST(ByteRows, SumsAreThoseOfTheQuantizedNumbers) {
  for_each_isa([&](const std::string&) {
    const std::vector<float> x = test::random_floats(3 * 64, 5);
    const test::Bytes b(x, 3, 64, 64);
    for (size_t block = 0; block < x.size() / 32; ++block) {
      int total = 0;
      for (size_t i = 0; i < 32; ++i) total += b.rows.values[block * 32 + i];
      EXPECT_EQ(b.rows.totals[block], static_cast<float>(total));
      EXPECT_EQ(b.rows.sums[block], b.rows.scales[block] * static_cast<float>(total));
    }
  });
}

TEST(ByteRows, EveryInstructionSetGivesTheSameNumbers) {
  const std::vector<float> x = test::random_floats(4 * 128, 6);
  const test::Bytes expected(x, 4, 128, 128);
  for_each_isa(
      [&](const std::string&) { EXPECT_EQ(test::Bytes(x, 4, 128, 128).unpacked(), expected.unpacked()); });
}

TEST(ByteRows, TiesGoToTheEvenNeighbour) {
  std::vector<float> x(32, 0.0F);
  x[0] = 127.0F;
  x[1] = 0.5F;
  x[2] = 1.5F;
  x[3] = -2.5F;
  for_each_isa([&](const std::string&) {
    const test::Bytes b(x, 1, 32, 32);
    EXPECT_EQ(b.value(0, 0), 127);
    EXPECT_EQ(b.value(0, 1), 0);
    EXPECT_EQ(b.value(0, 2), 2);
    EXPECT_EQ(b.value(0, 3), -2);
  });
}

TEST(ByteRows, ZerosTinyAndNotFiniteNumbers) {
  for_each_isa([&](const std::string&) {
    std::vector<float> x(5 * 32, 0.0F);
    for (size_t i = 32; i < 64; ++i) x[i] = 1e-42F;
    x[64 + 7] = NAN;
    x[96 + 31] = INFINITY;
    x[128] = -INFINITY;
    const test::Bytes b(x, 1, 160, 160);
    EXPECT_EQ(b.rows.scales[0], 0.0F);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(b.rows.values[i], 0);
    EXPECT_TRUE(std::isfinite(b.rows.scales[1]));
    for (int block = 2; block < 5; ++block) {
      EXPECT_TRUE(std::isnan(b.rows.scales[block])) << block;
      EXPECT_TRUE(std::isnan(b.rows.sums[block])) << block;
    }
  });
}

TEST(ByteRows, TypesOfFourAndFiveBitsAreMultipliedByThemWhereThatIsAskedFor) {
  for_each_isa([&](const std::string& isa) {
    for (const DType dtype : test::all_dtypes()) EXPECT_FALSE(multiplied_by_bytes(dtype));
    set_activation_bits(8);
    for (const DType dtype : {DType::q4_0, DType::q4_1, DType::q4_k, DType::q5_0, DType::q5_1, DType::q5_k})
      EXPECT_TRUE(multiplied_by_bytes(dtype)) << name(dtype);
    for (const DType dtype : {DType::iq4_nl, DType::q6_k, DType::bf16})
      EXPECT_FALSE(multiplied_by_bytes(dtype)) << name(dtype);
    EXPECT_EQ(multiplied_by_bytes(DType::q8_0), isa == "avx3_dl" || isa == "amx");
    EXPECT_EQ(multiplied_by_bf16(DType::bf16), isa == "amx");
    EXPECT_EQ(multiplied_by_bf16(DType::f16), isa == "amx");
    EXPECT_FALSE(multiplied_by_bf16(DType::f32));
    EXPECT_FALSE(multiplied_by_bf16(DType::q4_0));
    set_activation_bits(16);
  });
  EXPECT_THROW(set_activation_bits(4), Error);
  EXPECT_EQ(activation_bits(), 16);
}

}  // namespace
}  // namespace qwench
