#include <gtest/gtest.h>

#include <cmath>

#include "isas.h"
#include "kernels/machine_limits.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"

namespace qwench {
namespace {

using test::for_each_isa;

TEST(RmsNorm, EqualsTheFormulaInDoublePrecision) {
  for (const size_t n : {1U, 7U, 16U, 24U, 72U, 80U, 128U, 172U, 896U, 1024U, 4097U}) {
    const std::vector<float> x = test::random_floats(n, 11, 3.0F);
    const std::vector<float> weight = test::random_floats(n, 12);
    for_each_isa([&](const std::string&) {
      for (const float eps : {1e-6F, 1e-2F}) {
        std::vector<float> out(n + 1, 42.0F);
        rms_norm(x.data(), weight.data(), eps, static_cast<int64_t>(n), out.data());
        double squares = 0;
        for (const float v : x) squares += double{v} * v;
        const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
        for (size_t i = 0; i < n; ++i) {
          const double expected = x[i] * scale * weight[i];
          ASSERT_NEAR(out[i], expected, std::fabs(expected) * 5e-7) << n << " numbers, element " << i;
        }
        ASSERT_EQ(out[n], 42.0F);
        std::vector<float> in_place = x;
        rms_norm(in_place.data(), weight.data(), eps, static_cast<int64_t>(n), in_place.data());
        out.pop_back();
        ASSERT_EQ(in_place, out);
      }
    });
  }
}

TEST(RmsNorm, OfZerosIsZero) {
  for_each_isa([&](const std::string&) {
    std::vector<float> x(33, 0.0F);
    rms_norm(x.data(), std::vector<float>(33, 2.0F).data(), 1e-6F, 33, x.data());
    EXPECT_EQ(x, std::vector<float>(33, 0.0F));
  });
}

TEST(Rope, RotatesEachPairByItsAngle) {
  for (const size_t half : {1U, 8U, 12U, 32U, 40U, 64U, 128U}) {
    const std::vector<float> x = test::random_floats(2 * half, 21);
    std::vector<float> cos(half);
    std::vector<float> sin(half);
    for (size_t i = 0; i < half; ++i) {
      cos[i] = std::cos(0.37F * static_cast<float>(i + 1));
      sin[i] = std::sin(0.37F * static_cast<float>(i + 1));
    }
    for_each_isa([&](const std::string&) {
      for (const bool interleaved : {false, true}) {
        std::vector<float> found = x;
        (interleaved ? rope_interleaved : rope_halves)(found.data(), cos.data(), sin.data(),
                                                       static_cast<int64_t>(half));
        for (size_t i = 0; i < half; ++i) {
          const size_t first = interleaved ? 2 * i : i;
          const size_t second = interleaved ? 2 * i + 1 : i + half;
          const double a = double{x[first]} * cos[i] - double{x[second]} * sin[i];
          const double b = double{x[second]} * cos[i] + double{x[first]} * sin[i];
          ASSERT_NEAR(found[first], a, 5e-7) << "pair " << i << " of " << half;
          ASSERT_NEAR(found[second], b, 5e-7) << "pair " << i << " of " << half;
        }
      }
    });
  }
}

TEST(MachineLimits, AreThoseOfAComputer) {
  ThreadPool pool(1);
  const MachineLimits limits = measure_machine(pool);
  EXPECT_GT(limits.read_gb_per_s, 0.2);
  EXPECT_LT(limits.read_gb_per_s, 10'000);
  EXPECT_GT(limits.f32_gflop_per_s, 0.1);
  EXPECT_LT(limits.f32_gflop_per_s, 1'000'000);
  std::printf("one thread: %.1f GB/s, %.1f GFLOP/s\n", limits.read_gb_per_s, limits.f32_gflop_per_s);
}

}  // namespace
}  // namespace qwench
