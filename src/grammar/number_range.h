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

  /// Of a JSON number, a double as its shortest decimal. Empty for more than 40 digits.
  static std::optional<Decimal> of(const Json& number);
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
  int multiple_of = 1;  ///< other than 1 for integers alone
};

/// The decimal numbers of a range, without exponents, digit by digit: integers exactly (of at most 18 digits
/// where the range is wider), others with as many digits as a double tells apart.
GrammarBuilder::Expr numbers_within(GrammarBuilder& builder, const NumberRange& range);

}  // namespace qwench
