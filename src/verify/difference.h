#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace qwench {

/// What computed values may differ from recorded ones: absolute + relative * the largest recorded value of
/// the tensor.
struct Tolerance {
  double absolute = 0;
  double relative = 0;

  double of(double largest) const { return absolute + relative * largest; }
};

/// How far the computed values of one or more tensors lie from the recorded ones.
class Difference {
 public:
  /// The first value out of tolerance, in the order of prompts, positions and elements.
  struct First {
    int prompt;
    int64_t position;  ///< row of the tensor
    int64_t element;   ///< column
    double got;
    double want;
  };

  /// Takes in a tensor of rows of `cols` values; got.size() == want.size().
  void add(std::span<const float> got, std::span<const float> want, int64_t cols, Tolerance tolerance,
           int prompt);

  int tensors() const { return tensors_; }
  double max_abs() const { return max_abs_; }      ///< of got - want; infinite where a value is not finite
  double largest() const { return largest_; }      ///< of the recorded values, in magnitude
  double relative() const;                         ///< max_abs / largest
  double cosine() const;                           ///< of all values as one vector; 1 where all are zero
  double tolerance() const { return tolerance_; }  ///< the least of those used
  bool ok() const { return !first_.has_value(); }
  const std::optional<First>& first() const { return first_; }

 private:
  int tensors_ = 0;
  double max_abs_ = 0;
  double largest_ = 0;
  double tolerance_ = 0;
  double dot_ = 0;
  double got_squares_ = 0;
  double want_squares_ = 0;
  std::optional<First> first_;
};

}  // namespace qwench
