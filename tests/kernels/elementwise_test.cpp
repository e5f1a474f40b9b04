#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "isas.h"

namespace qwench {
namespace {

using test::for_each_isa;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Exp, IsWithin1_2UnitsOfTheLastPlace) {
  std::vector<float> x;
  for (float v = 0.0F; v > -87.3F; v -= 0.00037F) x.push_back(v);
  std::vector<float> y(x.size());
  for_each_isa([&](const std::string& isa) {
    exp_non_positive(x.data(), static_cast<int64_t>(x.size()), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(double{x[i]});
      const auto nearest = static_cast<float>(expected);
      const double unit = double{std::nextafter(nearest, kInfinity)} - nearest;
      worst = std::max(worst, std::fabs(y[i] - expected) / unit);
    }
    std::printf("exp on %s: %.3f units at worst\n", isa.c_str(), worst);
    EXPECT_LE(worst, 1.2);
  });
}

TEST(Exp, OfZeroIsOneAndOfVeryLittleIsZero) {
  const std::vector<float> x{0.0F, -0.0F, -87.4F, -1000.0F, -kInfinity, kNaN};
  for_each_isa([&](const std::string&) {
    for (const size_t count : {size_t{1}, x.size()}) {
      std::vector<float> y(count);
      for (size_t i = 0; i + count <= x.size(); ++i) {
        exp_non_positive(x.data() + i, static_cast<int64_t>(count), y.data());
        for (size_t j = 0; j < count; ++j) {
          const float v = x[i + j];
          if (std::isnan(v)) {
            EXPECT_TRUE(std::isnan(y[j]));
          } else {
            EXPECT_EQ(y[j], v == 0.0F ? 1.0F : 0.0F) << v;
          }
        }
      }
    }
  });
}

TEST(SiluMul, EqualsTheFormulaFromOneEndToTheOther) {
  std::vector<float> gate{0.0F,   1e-30F, -1e-30F, 87.0F, -87.0F, 88.8F,
                          -88.8F, 200.0F, -200.0F, 3e37F, -3e37F};
  for (const float v : test::random_floats(1000, 5, 6.0F)) gate.push_back(v);
  const std::vector<float> up = test::random_floats(gate.size(), 6);
  for_each_isa([&](const std::string&) {
    for (const size_t count : {size_t{1}, size_t{7}, gate.size()}) {
      std::vector<float> found(gate.begin(), gate.begin() + static_cast<std::ptrdiff_t>(count));
      silu_mul(found.data(), up.data(), static_cast<int64_t>(count));
      for (size_t i = 0; i < count; ++i) {
        const double expected = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
        ASSERT_NEAR(found[i], expected, std::fabs(expected) * 4e-7 + 1e-34) << gate[i];
      }
    }
  });
}

TEST(SiluMul, IsWithin3UnitsOfTheLastPlace) {
  std::vector<float> x;
  for (float v = -85.0F; v < 85.0F; v += 0.00071F) x.push_back(v);
  const std::vector<float> one(x.size(), 1.0F);
  for_each_isa([&](const std::string& isa) {
    std::vector<float> y = x;
    silu_mul(y.data(), one.data(), static_cast<int64_t>(y.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = x[i] / (1.0 + std::exp(-double{x[i]}));
      const float nearest = std::fabs(static_cast<float>(expected));
      const double unit = double{std::nextafter(nearest, kInfinity)} - nearest;
      worst = std::max(worst, std::fabs(y[i] - expected) / unit);
    }
    std::printf("silu on %s: %.3f units at worst\n", isa.c_str(), worst);
    EXPECT_LE(worst, 3.0);
  });
}

TEST(SiluMul, NaNStaysNaN) {
  for_each_isa([&](const std::string&) {
    std::vector<float> gate(9, kNaN);
    silu_mul(gate.data(), std::vector<float>(9, 1.0F).data(), 9);
    for (const float v : gate) EXPECT_TRUE(std::isnan(v));
  });
}

TEST(Add, AddsEveryElementAndNoMore) {
  const std::vector<float> x = test::random_floats(40, 1);
  const std::vector<float> y = test::random_floats(40, 2);
  for_each_isa([&](const std::string&) {
    for (int64_t n = 0; n <= 39; ++n) {
      std::vector<float> found = x;
      add(found.data(), y.data(), n);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(found[i], static_cast<int64_t>(i) < n ? x[i] + y[i] : x[i]);
    }
  });
}

TEST(ArgMax, FindsTheFirstOfTheLargest) {
  for_each_isa([&](const std::string&) {
    for (int64_t n = 1; n <= 67; ++n) {
      std::vector<float> x = test::random_floats(static_cast<size_t>(n), static_cast<uint32_t>(n));
      const auto largest = std::max_element(x.begin(), x.end());
      ASSERT_EQ(argmax(x.data(), n), largest - x.begin());
      for (size_t i = 0; i < x.size(); i += 3) x[i] = 100.0F;
      ASSERT_EQ(argmax(x.data(), n), 0);
      if (n > 3) {
        x[0] = 99.0F;
        ASSERT_EQ(argmax(x.data(), n), 3);
      }
      std::fill(x.begin(), x.end(), -3e38F);
      ASSERT_EQ(argmax(x.data(), n), 0);
    }
  });
}

TEST(ArgMax, AValueThatIsNotFiniteGivesMinusOne) {
  for_each_isa([&](const std::string&) {
    for (int64_t n = 1; n <= 35; ++n) {
      for (const float bad : {kNaN, kInfinity, -kInfinity}) {
        for (int64_t at = 0; at < n; ++at) {
          std::vector<float> x(static_cast<size_t>(n), 1.0F);
          x[static_cast<size_t>(at)] = bad;
          ASSERT_EQ(argmax(x.data(), n), -1) << bad << " at " << at << " of " << n;
        }
      }
    }
  });
}

}  // namespace
}  // namespace qwench
