#include "grammar/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace qwench {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr size_t kIntegerDigits = 18;
constexpr size_t kDoubleDigits = 15;
// A step takes as many states for each digit: of large ones, numbers are shorter.
constexpr int kLargeStep = 100;
constexpr size_t kDigitsOfLargeSteps = 12;

int compare_magnitude(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int whole = a.whole.compare(b.whole); whole != 0) return whole;
  return a.fraction.compare(b.fraction);  // without trailing zeros, the order of texts
}

/// Numbers of one sign, by their magnitude.
class Magnitudes {
 public:
  Magnitudes(GrammarBuilder& builder, const NumberRange& range, const NumberBound& low,
             const std::optional<NumberBound>& high)
      : builder_(builder),
        low_(low),
        high_(high),
        integer_(range.integer),
        as_doubles_(range.as_doubles),
        multiple_of_(range.multiple_of),
        scale_(static_cast<size_t>(range.scale)),
        is_multiple_(range.is_multiple()) {
    while (scale_ == 0 && multiple_of_ % 10 == 0) {  // of whole tens, only what is before their zeros counts
      multiple_of_ /= 10;
      ++zeros_;
    }
    if (integer_ || is_multiple_) return;
    const auto loses_digits = [&](const NumberBound& bound) {
      const size_t length = bound.value.whole.size();
      return fraction_digits(length) > 0 && length + fraction_digits(length) > kDoubleDigits;
    };
    if (loses_digits(low_) || (high_ && loses_digits(*high_))) {
      // Texts that differ may be the same double: an exclusive bound becomes the next double within.
      take_neighbour(low_, HUGE_VAL);
      if (high_) take_neighbour(*high_, 0);
    }
  }

  Expr make() {
    const size_t shortest = low_.value.whole.size();
    size_t usual = integer_ && !as_doubles_ ? kIntegerDigits : kDoubleDigits - scale_;
    if (multiple_of_ > kLargeStep) usual = std::min(usual, kDigitsOfLargeSteps);
    const size_t most = as_doubles_ ? usual : std::max(usual, shortest);
    const size_t longest = high_ ? std::min(high_->value.whole.size(), most) : most;
    std::vector<Expr> lengths;
    for (length_ = shortest; length_ <= longest; ++length_) {
      most_fraction_ = fraction_digits(length_);
      const bool tight_high = high_ && length_ == high_->value.whole.size();
      lengths.push_back(whole({length_, 0, length_ == shortest, tight_high, 0}));
    }
    return builder_.either(std::move(lengths));
  }

 private:
  /// As many as a double tells apart, and those of a bound that has as many digits before the point.
  size_t fraction_digits(size_t length) const {
    if (is_multiple_) return scale_;
    if (integer_ || length > kDoubleDigits) return 0;
    size_t digits = kDoubleDigits - length;
    if (low_.value.whole.size() == length) digits = std::max(digits, low_.value.fraction.size());
    if (high_ && high_->value.whole.size() == length) digits = std::max(digits, high_->value.fraction.size());
    return digits;
  }

  static void take_neighbour(NumberBound& bound, double towards) {
    if (!bound.exclusive || bound.value.is_zero()) return;
    const double own = std::strtod(bound.value.text().c_str(), nullptr);
    const double next = std::nextafter(own, towards);
    if (std::isfinite(next)) bound = {*Decimal::of(Json(next)), false};
  }

  /// So many digits were taken; whether they are those of a bound so far, and their remainder.
  struct Place {
    size_t length;
    size_t at;
    bool low;
    bool high;
    int remainder;

    // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14 on <=>
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  Expr digits(char first, char last) {
    const auto [known, is_new] = digits_.emplace(std::pair{first, last}, 0);
    if (is_new) known->second = builder_.byte(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
    return known->second;
  }

  /// Each digit that may come next with what follows it; neighbours that are followed by the same together.
  template <typename Follow>
  void for_digits(char first, char last, std::optional<char> low, std::optional<char> high, Follow&& follow) {
    if (low) first = std::max(first, *low);
    if (high) last = std::min(last, *high);
    for (char digit = first; digit <= last;) {
      const bool is_low = low && digit == *low;
      const bool is_high = high && digit == *high;
      char end = digit;
      if (multiple_of_ == 1 && !is_low && !is_high)
        end = high && last == *high ? static_cast<char>(last - 1) : last;
      follow(digit, end, is_low, is_high);
      digit = static_cast<char>(end + 1);
    }
  }

  Expr whole(Place place) {
    if (place.at == place.length) return behind_whole(place);
    if ((integer_ || is_multiple_) && place.at > 0 && !place.low && !place.high)
      place = {place.length - place.at + 1, 1, false, false, place.remainder};  // how many are left is all
    const bool in_zeros = place.length - place.at <= zeros_;
    const auto [known, is_new] = rules_.emplace(place, 0);
    if (!is_new) return builder_.ref(known->second);
    const GrammarBuilder::RuleId rule = builder_.declare("number");
    known->second = rule;
    std::vector<Expr> ways;
    const auto bound = [&](bool tight, const Decimal& value) {
      return tight ? std::optional<char>(value.whole[place.at]) : std::nullopt;
    };
    const char first = place.at == 0 && place.length > 1 ? '1' : '0';
    for_digits(first, in_zeros ? '0' : '9', bound(place.low, low_.value),
               place.high ? bound(true, high_->value) : std::nullopt,
               [&](char digit, char end, bool low, bool high) {
                 const int remainder = in_zeros ? place.remainder : remainder_behind(place, digit);
                 ways.push_back(builder_.sequence(
                     {digits(digit, end), whole({place.length, place.at + 1, low, high, remainder})}));
               });
    builder_.define(rule, builder_.either(std::move(ways)));
    return builder_.ref(rule);
  }

  /// May a number end after so many digits of its fraction?
  bool may_end(bool low, bool high, size_t at) const {
    const bool above = !low || (low_.value.fraction.size() <= at && !low_.exclusive);
    const bool below = !high || high_->value.fraction.size() > at || !high_->exclusive;
    return above && below;
  }

  Expr behind_whole(const Place& place) {
    std::vector<Expr> ways;
    if (may_end(place.low, place.high, 0) && is_step(place.remainder, 0)) ways.push_back(builder_.empty());
    if (!integer_ && most_fraction_ > 0) {
      Place behind = place;
      behind.at = 0;
      ways.push_back(builder_.sequence({builder_.literal("."), fraction(behind)}));
    }
    return builder_.either(std::move(ways));
  }

  /// Whether a number may end behind so many digits of its fraction, with this remainder.
  bool is_step(int remainder, size_t at) const {
    if (!is_multiple_) return true;
    int64_t rest = remainder;
    for (; at < scale_; ++at) rest = rest * 10 % multiple_of_;
    return rest == 0;
  }

  /// Digits behind the point; of `place`, `at` are taken.
  Expr fraction(const Place& place) {
    if (!place.low && !place.high && !is_multiple_)
      return builder_.repeat(digits('0', '9'), 1, static_cast<int>(most_fraction_ - place.at));
    const auto [known, is_new] = fractions_.emplace(place, 0);
    if (!is_new) return builder_.ref(known->second);
    const GrammarBuilder::RuleId rule = builder_.declare("fraction");
    known->second = rule;
    const auto digit_of = [&](const Decimal& value) {
      return place.at < value.fraction.size() ? value.fraction[place.at] : '0';
    };
    std::vector<Expr> ways;
    for_digits('0', '9', place.low ? std::optional(digit_of(low_.value)) : std::nullopt,
               place.high ? std::optional(digit_of(high_->value)) : std::nullopt,
               [&](char digit, char end, bool low, bool high) {
                 const Place next{place.length, place.at + 1, low, high, remainder_behind(place, digit)};
                 std::vector<Expr> rest;
                 if (may_end(low, high, next.at) && is_step(next.remainder, next.at))
                   rest.push_back(builder_.empty());
                 if (next.at < most_fraction_) rest.push_back(fraction(next));
                 ways.push_back(builder_.sequence({digits(digit, end), builder_.either(std::move(rest))}));
               });
    builder_.define(rule, builder_.either(std::move(ways)));
    return builder_.ref(rule);
  }

  int remainder_behind(const Place& place, char digit) const {
    return multiple_of_ == 1 ? 0 : (place.remainder * 10 + (digit - '0')) % multiple_of_;
  }

  GrammarBuilder& builder_;
  NumberBound low_;
  std::optional<NumberBound> high_;
  const bool integer_;
  const bool as_doubles_;
  int multiple_of_;
  size_t zeros_ = 0;  // that a multiple ends with
  const size_t scale_;
  const bool is_multiple_;
  size_t length_ = 0;
  size_t most_fraction_ = 0;
  std::map<Place, GrammarBuilder::RuleId> rules_;
  std::map<Place, GrammarBuilder::RuleId> fractions_;
  std::map<std::pair<char, char>, Expr> digits_;
};

Decimal negated(Decimal value) {
  value.negative = !value.negative && !value.is_zero();
  return value;
}

}  // namespace

std::optional<Decimal> Decimal::of(const Json& number) {
  if (!number.is_number()) return std::nullopt;
  constexpr double kFirstWithoutFraction = 9007199254740992.0;  // 2^53
  const bool whole = number.is_number_float() && std::abs(number.get<double>()) >= kFirstWithoutFraction;
  std::string text = whole ? fmt::format("{:.0f}", number.get<double>()) : number.dump();
  Decimal value;
  if (text.starts_with('-')) {
    value.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != std::string::npos) {
    const size_t begin = e + (text[e + 1] == '+' ? 2 : 1);
    if (std::from_chars(text.data() + begin, text.data() + text.size(), exponent).ec != std::errc{})
      return std::nullopt;
    text.resize(e);
  }
  const size_t point = text.find('.');
  value.whole = text.substr(0, point);
  value.fraction = point == std::string::npos ? "" : text.substr(point + 1);
  for (; exponent > 0; --exponent) {
    value.whole += value.fraction.empty() ? '0' : value.fraction[0];
    if (!value.fraction.empty()) value.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    value.fraction.insert(0, 1, value.whole.empty() ? '0' : value.whole.back());
    if (!value.whole.empty()) value.whole.pop_back();
  }
  value.whole.erase(0, std::min(value.whole.find_first_not_of('0'), value.whole.size()));
  if (value.whole.empty()) value.whole = "0";
  value.fraction.resize(value.fraction.find_last_not_of('0') + 1);
  if (value.is_zero()) value.negative = false;
  return value;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitude(b, a) : compare_magnitude(a, b);
}

GrammarBuilder::Expr numbers_within(GrammarBuilder& builder, const NumberRange& range) {
  const Decimal zero{false, "0", ""};
  if (range.low && range.high) {
    const int order = compare(range.low->value, range.high->value);
    if (order > 0 || (order == 0 && (range.low->exclusive || range.high->exclusive)))
      return builder.nothing();
  }
  const auto make = [&](const NumberBound& low, const std::optional<NumberBound>& high) {
    return Magnitudes(builder, range, low, high).make();
  };
  std::vector<Expr> signs;
  const bool has_positive =
      !range.high || (!range.high->value.negative && !(range.high->value.is_zero() && range.high->exclusive));
  if (has_positive) {
    const bool from_zero = !range.low || range.low->value.negative;
    signs.push_back(make(from_zero ? NumberBound{zero, false} : *range.low, range.high));
  }
  if (!range.low || range.low->value.negative) {
    // Minus zero is left out: zero is among the others.
    const bool to_zero = !range.high || !range.high->value.negative;
    const NumberBound low =
        to_zero ? NumberBound{zero, true} : NumberBound{negated(range.high->value), range.high->exclusive};
    std::optional<NumberBound> high;
    if (range.low) high = NumberBound{negated(range.low->value), range.low->exclusive};
    signs.push_back(builder.sequence({builder.literal("-"), make(low, high)}));
  }
  return builder.either(std::move(signs));
}

}  // namespace qwench
