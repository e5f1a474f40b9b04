#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qwench::jinja {

/// An integer of any size up to kMaxBits, for the rare template that leaves 64 bits: sign and magnitude in
/// base 2^32, schoolbook algorithms. Operations that would pass the bound fail (Failure, kind limit).
class BigInt {
 public:
  static constexpr size_t kMaxBits = 32768;

  BigInt() = default;
  BigInt(int64_t value);  // NOLINT: meant to convert

  /// `digits` in base 2 to 36, without sign or prefix; nullopt when one is no digit of that base.
  static std::optional<BigInt> parse(std::string_view digits, int base);
  /// `value` without its fraction; must be finite.
  static BigInt truncate(double value);

  bool negative() const { return negative_; }
  bool zero() const { return limbs_.empty(); }
  bool odd() const { return !limbs_.empty() && (limbs_[0] & 1) != 0; }
  size_t bits() const;
  std::optional<int64_t> to_int64() const;
  double to_double() const;  ///< rounded to nearest even; infinite when too large
  std::string to_string(int base = 10) const;

  BigInt operator-() const;
  friend BigInt operator+(const BigInt& a, const BigInt& b);
  friend BigInt operator-(const BigInt& a, const BigInt& b) { return a + -b; }
  friend BigInt operator*(const BigInt& a, const BigInt& b);
  friend int compare(const BigInt& a, const BigInt& b);

  /// Python's // and %: the quotient is rounded down, the remainder has the divisor's sign. `b` is not zero.
  static void divide(const BigInt& a, const BigInt& b, BigInt& quotient, BigInt& remainder);
  static BigInt power(const BigInt& base, uint64_t exponent);

 private:
  using Limbs = std::vector<uint32_t>;
  static int compare_limbs(const Limbs& a, const Limbs& b);
  static uint32_t divide_small(Limbs& limbs, uint32_t divisor);
  void trim();

  bool negative_ = false;
  Limbs limbs_;  // least significant first, without leading zeros; empty for 0
};

}  // namespace qwench::jinja
