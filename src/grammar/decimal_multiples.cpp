#include "grammar/decimal_multiples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

namespace qwench {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr int kMostScale = 9;
constexpr int64_t kMostUnits = 1000;
constexpr int kTriedDigits = 5;  // before and behind the point together

int64_t power(int64_t base, int exponent) {
  int64_t result = 1;
  for (; exponent > 0; --exponent) result *= base;
  return result;
}

bool within(const Decimal& value, const NumberRange& range) {
  const auto inside = [&](const std::optional<NumberBound>& bound, int side) {
    if (!bound) return true;
    const int order = compare(value, bound->value) * side;
    return order > 0 || (order == 0 && !bound->exclusive);
  };
  return inside(range.low, 1) && inside(range.high, -1);
}

/// The texts of a list as the smallest automaton without cycles, each of its states a rule.
class Listed {
 public:
  explicit Listed(GrammarBuilder& builder) : builder_(builder) {}

  Expr make(std::vector<std::string> texts) {
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    if (texts.empty()) return builder_.nothing();
    return builder_.ref(state(texts, 0, texts.size(), 0));
  }

 private:
  using Edges = std::vector<std::pair<char, GrammarBuilder::RuleId>>;

  GrammarBuilder::RuleId state(const std::vector<std::string>& texts, size_t begin, size_t end, size_t at) {
    const bool ends = texts[begin].size() == at;
    Edges edges;
    for (size_t i = begin + (ends ? 1 : 0); i < end;) {
      const char c = texts[i][at];
      const size_t first = i;
      while (i < end && texts[i][at] == c) ++i;
      edges.emplace_back(c, state(texts, first, i, at + 1));
    }
    const auto [known, is_new] = known_.emplace(std::pair{ends, edges}, 0);
    if (!is_new) return known->second;
    std::vector<Expr> ways;
    if (ends) ways.push_back(builder_.empty());
    for (size_t i = 0; i < edges.size();) {  // neighbours that lead to the same
      size_t last = i;
      while (last + 1 < edges.size() && edges[last + 1].second == edges[i].second &&
             edges[last + 1].first == edges[last].first + 1)
        ++last;
      ways.push_back(builder_.sequence(
          {builder_.byte(static_cast<uint8_t>(edges[i].first), static_cast<uint8_t>(edges[last].first)),
           builder_.ref(edges[i].second)}));
      i = last + 1;
    }
    known->second = builder_.declare("multiple");
    builder_.define(known->second, builder_.either(std::move(ways)));
    return known->second;
  }

  GrammarBuilder& builder_;
  std::map<std::pair<bool, Edges>, GrammarBuilder::RuleId> known_;
};

struct Step {
  int64_t units = 0;  // of 10^-scale
  int scale = 0;
  double value = 0;
  bool integers = false;
};

/// Multiples below 10^(kTriedDigits - digits), of at most so many digits behind the point.
Expr tried_multiples(GrammarBuilder& builder, const Step& step, const NumberRange& range, int digits) {
  const int64_t unit = power(10, digits);
  const int64_t parts = power(10, step.scale - digits);
  std::vector<std::string> texts[2];  // of positive numbers, and negative ones without their sign
  for (int64_t i = 1; i < power(10, kTriedDigits); ++i) {
    if (i * parts % step.units != 0 || (step.integers && i % unit != 0)) continue;
    Decimal value{false, std::to_string(i / unit),
                  digits == 0 ? "" : fmt::format("{:0{}}", i % unit, digits)};
    const std::string padded = value.text();
    const double quotient = std::strtod(padded.c_str(), nullptr) / step.value;
    if (quotient != std::floor(quotient)) continue;
    value.fraction.resize(value.fraction.find_last_not_of('0') + 1);
    for (const bool negative : {false, true}) {
      value.negative = negative;
      if (!within(value, range)) continue;
      const Decimal magnitude{false, value.whole, value.fraction};
      texts[negative ? 1 : 0].push_back(magnitude.text());
      if (!step.integers) texts[negative ? 1 : 0].push_back(padded);
    }
  }
  std::vector<Expr> ways;
  if (within({false, "0", ""}, range)) ways.push_back(builder.literal("0"));
  const Expr minus = builder.literal("-");
  if (texts[0] == texts[1]) {
    ways.push_back(builder.sequence({builder.optional(minus), Listed(builder).make(texts[0])}));
  } else {
    ways.push_back(Listed(builder).make(texts[0]));
    ways.push_back(builder.sequence({minus, Listed(builder).make(texts[1])}));
  }
  return builder.either(std::move(ways));
}

/// Whether each double that is exactly a multiple has a whole quotient, up to 2^53: the step as a double is
/// off by at most 2^-54 of it, half of what parts two doubles.
bool quotients_are_exact(const Step& step) {
  constexpr int kExactScale = 4;  // so that the products below fit the 64 bits of long double
  if (step.scale > kExactScale) return false;
  const long double off =
      std::abs(static_cast<long double>(step.value) * static_cast<long double>(power(10, step.scale)) -
               static_cast<long double>(step.units));
  return std::ldexp(off, 54) <= static_cast<long double>(step.units);
}

std::optional<Expr> exact_multiples(GrammarBuilder& builder, NumberRange range, int64_t units, int scale) {
  if (units > kMostUnits) return std::nullopt;
  range.multiple_of = static_cast<int>(units);
  range.scale = scale;
  range.integer = scale == 0;
  range.as_doubles = true;
  return numbers_within(builder, range);
}

/// The range without what is nearer to zero than 10^digits.
std::vector<NumberRange> beyond(const NumberRange& range, int digits) {
  const Decimal limit{false, "1" + std::string(static_cast<size_t>(digits), '0'), ""};
  Decimal negative = limit;
  negative.negative = true;
  std::vector<NumberRange> parts;
  if (!range.high || compare(range.high->value, limit) >= 0) {
    parts.push_back(range);
    if (!range.low || compare(range.low->value, limit) < 0) parts.back().low = NumberBound{limit};
  }
  if (!range.low || compare(range.low->value, negative) <= 0) {
    parts.push_back(range);
    if (!range.high || compare(range.high->value, negative) > 0) parts.back().high = NumberBound{negative};
  }
  return parts;
}

}  // namespace

std::optional<GrammarBuilder::Expr> decimal_multiples(GrammarBuilder& builder, const NumberRange& range,
                                                      const Decimal& decimal) {
  Step step{.scale = static_cast<int>(decimal.fraction.size()),
            .value = std::strtod(decimal.text().c_str(), nullptr),
            .integers = range.integer};
  if (step.scale > kMostScale || decimal.whole.size() + decimal.fraction.size() > 12) return std::nullopt;
  step.units = std::strtoll((decimal.whole + decimal.fraction).c_str(), nullptr, 10);
  if (step.units == 0 || step.units > kMostUnits) return std::nullopt;

  // What is a whole number too, or of a few binary digits behind the point.
  const int64_t unit = power(10, step.scale);
  const int64_t wholes = std::lcm(step.units, unit) / unit;
  if (step.units % power(5, step.scale) == 0) {
    return step.integers ? exact_multiples(builder, range, wholes, 0)
                         : exact_multiples(builder, range, step.units, step.scale);
  }
  const int digits = step.integers ? 0 : std::min(step.scale, kTriedDigits - 1);
  std::vector<Expr> ways{tried_multiples(builder, step, range, digits)};
  if (quotients_are_exact(step)) {
    for (const NumberRange& part : beyond(range, kTriedDigits - digits)) {
      const int64_t quarters = std::lcm(4 * step.units, unit) / unit;  // of a quarter
      const auto more = step.integers ? exact_multiples(builder, part, wholes, 0)
                                      : exact_multiples(builder, part, quarters * 25, 2);
      if (more) ways.push_back(*more);
    }
  }
  return builder.either(std::move(ways));
}

bool is_multiple(const Json& value, const Json& step) {
  if (step.is_number_float()) {
    const double quotient = value.get<double>() / step.get<double>();
    return std::isfinite(quotient) && quotient == std::floor(quotient);
  }
  if (value.is_number_float()) return std::fmod(value.get<double>(), step.get<double>()) == 0;
  const auto magnitude = [](const Json& number) {
    if (number.is_number_unsigned()) return number.get<uint64_t>();
    const auto whole = number.get<int64_t>();
    return whole < 0 ? ~static_cast<uint64_t>(whole) + 1 : static_cast<uint64_t>(whole);
  };
  return magnitude(step) != 0 && magnitude(value) % magnitude(step) == 0;
}

}  // namespace qwench
