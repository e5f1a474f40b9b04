#include "text/jinja/bigint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "text/jinja/error.h"

namespace qwench::jinja {
namespace {

void check_bits(size_t bits) {
  if (bits > BigInt::kMaxBits) fail(TemplateErrorKind::limit, "an integer grew beyond 32768 bits");
}

}  // namespace

BigInt::BigInt(int64_t value) : negative_(value < 0) {
  uint64_t magnitude = negative_ ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  for (; magnitude != 0; magnitude >>= 32) limbs_.push_back(static_cast<uint32_t>(magnitude));
}

std::optional<BigInt> BigInt::parse(std::string_view digits, int base) {
  check_bits(digits.size() * 3);  // at least three bits a digit, but for base 2 and 3
  BigInt result;
  for (const char c : digits) {
    int digit = 99;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if (c >= 'a' && c <= 'z')
      digit = c - 'a' + 10;
    else if (c >= 'A' && c <= 'Z')
      digit = c - 'A' + 10;
    if (digit >= base) return std::nullopt;
    uint64_t carry = static_cast<uint64_t>(digit);
    for (uint32_t& limb : result.limbs_) {
      carry += static_cast<uint64_t>(limb) * static_cast<uint64_t>(base);
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) result.limbs_.push_back(static_cast<uint32_t>(carry));
  }
  return result;
}

BigInt BigInt::truncate(double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::trunc(std::fabs(value)), &exponent);  // in [0.5, 1)
  BigInt result(static_cast<int64_t>(std::ldexp(fraction, 53)));
  if (exponent > 53) {
    result = result * power(2, static_cast<uint64_t>(exponent - 53));
  } else {
    BigInt rest;
    divide(result, power(2, static_cast<uint64_t>(53 - exponent)), result, rest);
  }
  result.negative_ = value < 0 && !result.zero();
  return result;
}

void BigInt::trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) negative_ = false;
}

size_t BigInt::bits() const {
  return limbs_.empty() ? 0 : limbs_.size() * 32 - static_cast<size_t>(std::countl_zero(limbs_.back()));
}

std::optional<int64_t> BigInt::to_int64() const {
  if (limbs_.size() > 2) return std::nullopt;
  uint64_t magnitude = 0;
  for (size_t i = limbs_.size(); i-- > 0;) magnitude = magnitude << 32 | limbs_[i];
  const uint64_t limit = uint64_t{1} << 63;
  if (negative_) {
    if (magnitude > limit) return std::nullopt;
    return static_cast<int64_t>(0 - magnitude);
  }
  if (magnitude >= limit) return std::nullopt;
  return static_cast<int64_t>(magnitude);
}

double BigInt::to_double() const {
  const size_t count = bits();
  if (count == 0) return 0.0;
  if (count > 1024)
    return negative_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  // The top 64 bits, with a sticky lowest bit for all that is cut off: one rounding to 53 bits remains.
  const size_t shift = count > 64 ? count - 64 : 0;
  uint64_t top = 0;
  bool sticky = false;
  for (size_t bit = 0; bit < count; ++bit) {
    const bool set = (limbs_[bit / 32] >> (bit % 32) & 1) != 0;
    if (bit < shift)
      sticky = sticky || set;
    else if (set)
      top |= uint64_t{1} << (bit - shift);
  }
  if (sticky) top |= 1;
  const double value = std::ldexp(static_cast<double>(top), static_cast<int>(shift));
  return negative_ ? -value : value;
}

uint32_t BigInt::divide_small(Limbs& limbs, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs.size(); i-- > 0;) {
    rest = rest << 32 | limbs[i];
    limbs[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
  return static_cast<uint32_t>(rest);
}

std::string BigInt::to_string(int base) const {
  if (limbs_.empty()) return "0";
  std::string digits;
  for (Limbs rest = limbs_; !rest.empty();) {
    digits += "0123456789abcdefghijklmnopqrstuvwxyz"[divide_small(rest, static_cast<uint32_t>(base))];
  }
  if (negative_) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

BigInt BigInt::operator-() const {
  BigInt result = *this;
  result.negative_ = !negative_ && !zero();
  return result;
}

int BigInt::compare_limbs(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

int compare(const BigInt& a, const BigInt& b) {
  if (a.negative_ != b.negative_) return a.negative_ ? -1 : 1;
  const int magnitudes = BigInt::compare_limbs(a.limbs_, b.limbs_);
  return a.negative_ ? -magnitudes : magnitudes;
}

BigInt operator+(const BigInt& a, const BigInt& b) {
  const bool a_larger = BigInt::compare_limbs(a.limbs_, b.limbs_) >= 0;
  const BigInt& large = a_larger ? a : b;
  const BigInt& small = a_larger ? b : a;
  BigInt result;
  result.negative_ = large.negative_;
  int64_t carry = 0;
  for (size_t i = 0; i < large.limbs_.size(); ++i) {
    const int64_t addend = i < small.limbs_.size() ? small.limbs_[i] : 0;
    carry += static_cast<int64_t>(large.limbs_[i]) + (a.negative_ == b.negative_ ? addend : -addend);
    result.limbs_.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;  // -1 for a borrow
  }
  if (carry > 0) result.limbs_.push_back(static_cast<uint32_t>(carry));
  result.trim();
  check_bits(result.bits());
  return result;
}

BigInt operator*(const BigInt& a, const BigInt& b) {
  BigInt result;
  if (a.zero() || b.zero()) return result;
  check_bits(a.bits() + b.bits() - 1);
  result.negative_ = a.negative_ != b.negative_;
  result.limbs_.assign(a.limbs_.size() + b.limbs_.size(), 0);
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size(); ++j) {
      carry += static_cast<uint64_t>(a.limbs_[i]) * b.limbs_[j] + result.limbs_[i + j];
      result.limbs_[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    result.limbs_[i + b.limbs_.size()] = static_cast<uint32_t>(carry);
  }
  result.trim();
  return result;
}

void BigInt::divide(const BigInt& a, const BigInt& b, BigInt& quotient, BigInt& remainder) {
  BigInt q;
  BigInt r;
  if (b.limbs_.size() == 1) {
    q.limbs_ = a.limbs_;
    const uint32_t rest = divide_small(q.limbs_, b.limbs_[0]);
    if (rest != 0) r.limbs_.push_back(rest);
  } else {
    // Shift and subtract, bit by bit: slow and plain, for numbers of a few hundred bits.
    q.limbs_.assign(a.limbs_.size(), 0);
    BigInt divisor = b;
    divisor.negative_ = false;
    for (size_t bit = a.bits(); bit-- > 0;) {
      uint32_t carry = a.limbs_[bit / 32] >> (bit % 32) & 1;
      for (uint32_t& limb : r.limbs_) {
        const uint32_t top = limb >> 31;
        limb = limb << 1 | carry;
        carry = top;
      }
      if (carry != 0) r.limbs_.push_back(carry);
      if (compare_limbs(r.limbs_, divisor.limbs_) >= 0) {
        r = r - divisor;
        q.limbs_[bit / 32] |= uint32_t{1} << (bit % 32);
      }
    }
    q.trim();
  }
  q.negative_ = a.negative_ != b.negative_ && !q.zero();
  r.negative_ = a.negative_ && !r.zero();
  if (!r.zero() && r.negative_ != b.negative_) {
    q = q - BigInt(1);
    r = r + b;
  }
  quotient = std::move(q);
  remainder = std::move(r);
}

BigInt BigInt::power(const BigInt& base, uint64_t exponent) {
  if (base.bits() > 1) {
    if (exponent > kMaxBits) check_bits(kMaxBits + 1);
    check_bits((base.bits() - 1) * exponent);
  }
  BigInt result(1);
  BigInt square = base;
  while (exponent != 0) {
    if ((exponent & 1) != 0) result = result * square;
    exponent >>= 1;
    if (exponent != 0) square = square * square;
  }
  return result;
}

}  // namespace qwench::jinja
