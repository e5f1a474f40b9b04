#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "core/json.h"
#include "grammar/grammar_builder.h"

namespace qwench {

/// A decimal number, exactly.
struct Decimal {
  bool negative = false;  ///< not of zero
  std::string whole;      ///< digits without leading zeros; "0"
  std::string fraction;   ///< digits without trailing zeros

  /// Of a JSON number; a double below 2^53 as its shortest decimal, others, which are whole, digit by digit.
  /// Any two numbers compare as their values do. Empty for what is no number.
  static std::optional<Decimal> of(const Json& number);
  std::string text() const {
    return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
  }
  bool is_zero() const { return whole == "0" && fraction.empty(); }
};
/// Less than, equal to or greater than 0, as `a` is to `b`.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
  bool integer = false;
  int multiple_of = 1;      ///< in units of 10^-scale
  int scale = 0;            ///< digits of a fraction, where they are multiples
  bool as_doubles = false;  ///< whole numbers too have no more digits than a double tells apart
  bool is_multiple() const { return multiple_of != 1 || scale > 0; }
};

/// The decimal numbers of a range, without exponents, digit by digit: integers exactly (of at most 18 digits
/// where the range is wider), others with as many digits as a double tells apart. Read as doubles they are
/// within the range too.
GrammarBuilder::Expr numbers_within(GrammarBuilder& builder, const NumberRange& range);

}  // namespace qwench
