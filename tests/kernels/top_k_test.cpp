#include "kernels/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace qwench {
namespace {

TEST(TopK, EqualsASortThatKeepsTheOrderOfEquals) {
  std::mt19937 random(3);
  for (const int n : {1, 2, 5, 64, 300, 1000}) {
    for (const int values : {1, 3, 50, 100000}) {
      std::vector<float> x(static_cast<size_t>(n));
      for (float& number : x)
        number = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(values)) - values / 2);
      std::vector<int32_t> order(x.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)];
      });
      for (const int k : {1, 2, 7, 128, n}) {
        if (k > n) continue;
        std::vector<int32_t> ids(static_cast<size_t>(k));
        std::vector<float> largest(static_cast<size_t>(k));
        top_k(x.data(), n, k, ids.data(), largest.data());
        for (size_t i = 0; i < ids.size(); ++i) {
          ASSERT_EQ(ids[i], order[i]) << "n " << n << ", k " << k << ", place " << i;
          ASSERT_EQ(largest[i], x[static_cast<size_t>(order[i])]);
        }
      }
    }
  }
}

TEST(TopK, ARowWithAValueThatIsNotFiniteHasNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at = 0; at < 5; ++at) {
      std::vector<float> x{1, 2, 3, 4, 5};
      x[at] = bad;
      std::vector<int32_t> ids(2);
      std::vector<float> largest(2);
      top_k(x.data(), 5, 2, ids.data(), largest.data());
      EXPECT_EQ(ids[0], -1) << bad << " at " << at;
    }
  }
}

}  // namespace
}  // namespace qwench
