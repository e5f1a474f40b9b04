#include "kernels/quantized_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isas.h"
#include "quantized.h"

namespace qwench {
namespace {

using test::for_each_isa;

TEST(QuantizedRows, AnActivationIsWithinHalfAStepOfItself) {
  for_each_isa([&](const std::string&) {
    for (const float scale : {1e-12F, 1.0F, 1e12F}) {
      const std::vector<float> x = test::random_floats(5 * 96, 3, scale);
      const test::Quantized q(x, 5, 96, 96);
      const std::vector<float> back = q.unpacked();
      for (size_t i = 0; i < x.size(); ++i) {
        const double step = q.rows.scales[i / 32];
        ASSERT_LE(std::fabs(double{x[i]} - back[i]), 0.501 * step) << i;
        ASSERT_LE(std::abs(int{q.rows.values[i]}), 32767) << i;
      }
    }
  });
}

TEST(QuantizedRows, SumsAreThoseOfTheQuantizedNumbers) {
  for_each_isa([&](const std::string&) {
    const std::vector<float> x = test::random_floats(3 * 64, 5);
    const test::Quantized q(x, 3, 64, 64);
    for (size_t half = 0; half < x.size() / 16; ++half) {
      int sum = 0;
      for (size_t i = 0; i < 16; ++i) sum += q.rows.values[half * 16 + i];
      const float scale = q.rows.scales[half / 2];
      EXPECT_EQ(q.rows.half_sums[half], scale * static_cast<float>(sum));
      if (half % 2 == 1) {
        EXPECT_NEAR(q.rows.sums[half / 2], q.rows.half_sums[half - 1] + q.rows.half_sums[half],
                    1e-5 * std::fabs(q.rows.sums[half / 2]) + 1e-6);
      }
    }
  });
}

TEST(QuantizedRows, EveryInstructionSetGivesTheSameNumbers) {
  const std::vector<float> x = test::random_floats(4 * 128, 6);
  const test::Quantized expected(x, 4, 128, 128);
  for_each_isa([&](const std::string&) {
    const test::Quantized q(x, 4, 128, 128);
    EXPECT_EQ(q.unpacked(), expected.unpacked());
  });
}

TEST(QuantizedRows, TiesGoToTheEvenNeighbour) {
  std::vector<float> x(32, 0.0F);
  x[0] = 32767.0F;
  x[1] = 0.5F;
  x[2] = 1.5F;
  x[3] = -2.5F;
  for_each_isa([&](const std::string&) {
    const test::Quantized q(x, 1, 32, 32);
    EXPECT_EQ(q.rows.values[0], 32767);
    EXPECT_EQ(q.rows.values[1], 0);
    EXPECT_EQ(q.rows.values[2], 2);
    EXPECT_EQ(q.rows.values[3], -2);
  });
}

TEST(QuantizedRows, ZerosTinyAndNotFiniteNumbers) {
  for_each_isa([&](const std::string&) {
    std::vector<float> x(5 * 32, 0.0F);
    for (size_t i = 32; i < 64; ++i) x[i] = 1e-42F;
    x[64 + 7] = NAN;
    x[96 + 31] = INFINITY;
    x[128] = -INFINITY;
    const test::Quantized q(x, 1, 160, 160);
    EXPECT_EQ(q.rows.scales[0], 0.0F);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(q.rows.values[i], 0);
    EXPECT_TRUE(std::isfinite(q.rows.scales[1]));
    for (int block = 2; block < 5; ++block) {
      EXPECT_TRUE(std::isnan(q.rows.scales[block])) << block;
      EXPECT_TRUE(std::isnan(q.rows.sums[block])) << block;
    }
  });
}

}  // namespace
}  // namespace qwench
