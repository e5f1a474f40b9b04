#include "verify/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qwench {

void Difference::add(std::span<const float> got, std::span<const float> want, int64_t cols,
                     Tolerance tolerance, int prompt) {
  double largest = 0;
  for (const float value : want) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  const double limit = tolerance.of(largest);
  tolerance_ = tensors_ == 0 ? limit : std::min(tolerance_, limit);
  largest_ = std::max(largest_, largest);
  ++tensors_;
  for (size_t i = 0; i < want.size(); ++i) {
    const auto a = static_cast<double>(got[i]);
    const auto b = static_cast<double>(want[i]);
    const double distance = std::isfinite(a - b) ? std::abs(a - b) : std::numeric_limits<double>::infinity();
    max_abs_ = std::max(max_abs_, distance);
    dot_ += a * b;
    got_squares_ += a * a;
    want_squares_ += b * b;
    if (distance > limit && !first_) {
      const auto at = static_cast<int64_t>(i);
      first_ = First{prompt, at / cols, at % cols, a, b};
    }
  }
}

double Difference::relative() const { return largest_ > 0 ? max_abs_ / largest_ : max_abs_; }

double Difference::cosine() const {
  const double norms = std::sqrt(got_squares_) * std::sqrt(want_squares_);
  if (norms > 0) return dot_ / norms;
  return got_squares_ == want_squares_ ? 1 : 0;
}

}  // namespace qwench
