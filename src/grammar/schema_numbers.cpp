#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "grammar/decimal_multiples.h"
#include "grammar/schema_compiler.h"
#include "grammar/text_product.h"

namespace qwench {
namespace {

using Expr = GrammarBuilder::Expr;

Expr digit_of_range(GrammarBuilder& builder, char first, char last) {
  return builder.byte(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
}

/// Multiples of `step` of any length, by the remainder of their digits so far.
Expr multiples_of(GrammarBuilder& builder, int step) {
  std::vector<GrammarBuilder::RuleId> rules;
  for (int i = 0; i < step; ++i) rules.push_back(builder.declare("multiple"));
  const auto digits = [&](int remainder) {
    std::vector<Expr> ways;
    for (int digit = 0; digit < 10; ++digit) {
      const auto c = static_cast<char>('0' + digit);
      const auto next = static_cast<size_t>((remainder * 10 + digit) % step);
      ways.push_back(builder.sequence({digit_of_range(builder, c, c), builder.ref(rules[next])}));
    }
    return builder.either(std::move(ways));
  };
  for (int i = 0; i < step; ++i)
    builder.define(rules[static_cast<size_t>(i)], i == 0 ? builder.optional(digits(0)) : digits(i));
  return digits(0);
}

/// What `excluded` demands not to be, as texts without exponents.
Expr excluded_numbers(GrammarBuilder& builder, const Json& excluded) {
  const Expr zeros = builder.repeat(builder.literal("0"), 0, GrammarBuilder::kUnbounded);
  const Expr no_fraction = builder.optional(builder.sequence({builder.literal("."), zeros}));
  const Expr minus = builder.optional(builder.literal("-"));
  std::vector<Expr> ways;
  for (const Json& one : excluded) {
    if (one.contains("type")) {
      const Expr digits = builder.repeat(digit_of_range(builder, '0', '9'), 1, GrammarBuilder::kUnbounded);
      ways.push_back(builder.sequence({minus, digits, no_fraction}));
    } else if (one.contains("multipleOf")) {
      ways.push_back(
          builder.sequence({minus, multiples_of(builder, one["multipleOf"].get<int>()), no_fraction}));
    } else {
      for (const Json& value : one["enum"]) {
        const auto decimal = Decimal::of(value);
        if (!decimal) continue;
        const Expr text = builder.literal(decimal->text());
        ways.push_back(builder.sequence({text, decimal->fraction.empty() ? no_fraction : zeros}));
      }
    }
  }
  return builder.either(std::move(ways));
}

}  // namespace

std::optional<NumberBound> SchemaCompiler::bound(const Json& schema, const char* inclusive,
                                                 const char* exclusive, bool lower,
                                                 const std::string& path) const {
  std::optional<NumberBound> tightest;
  for (const char* keyword : {inclusive, exclusive}) {
    if (!schema.contains(keyword)) continue;
    const Json& value = schema[keyword];
    // Draft 4 has booleans here, which say whether minimum and maximum are of the range.
    if (value.is_boolean() && keyword == exclusive) {
      if (tightest && value.get<bool>()) tightest->exclusive = true;
      continue;
    }
    if (!value.is_number()) fail(path, fmt::format("{}: found {}, expected a number", keyword, value.dump()));
    const auto decimal = Decimal::of(value);
    if (!decimal) fail(path, fmt::format("{}: found {}, which has too many digits", keyword, value.dump()));
    const NumberBound found{*decimal, keyword == exclusive};
    if (tightest) {
      const int order = compare(found.value, tightest->value);
      const bool tighter = lower ? order > 0 : order < 0;
      if (!tighter && !(order == 0 && found.exclusive)) continue;
    }
    tightest = found;
  }
  return tightest;
}

/// The same again is the same rule: automata of steps are large.
GrammarBuilder::Expr SchemaCompiler::compile_number(const Json& schema, bool integer,
                                                    const std::string& path) {
  Json asked = Json::array({integer});
  for (const char* keyword :
       {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format", kAlso})
    asked.push_back(schema.contains(keyword) ? schema[keyword] : Json());
  const std::string key = asked.dump();
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  const Expr made = builder_.rule("number", numbers(schema, integer, path));
  numbers_.emplace(key, made);
  return made;
}

GrammarBuilder::Expr SchemaCompiler::numbers(const Json& schema, bool integer, const std::string& path) {
  NumberRange range;
  range.low = bound(schema, "minimum", "exclusiveMinimum", true, path);
  range.high = bound(schema, "maximum", "exclusiveMaximum", false, path);
  range.integer = integer;
  if (schema.contains("format") && schema["format"] == "int32") {
    const NumberBound lowest{*Decimal::of(std::numeric_limits<int32_t>::min())};
    const NumberBound highest{*Decimal::of(std::numeric_limits<int32_t>::max())};
    if (!range.low || compare(range.low->value, lowest.value) < 0) range.low = lowest;
    if (!range.high || compare(range.high->value, highest.value) > 0) range.high = highest;
  }
  std::optional<Decimal> fraction;
  if (schema.contains("multipleOf")) {
    constexpr int kMost = 1024;  // but for the zeros at its end
    constexpr size_t kMostDigits = 9;
    const Json& value = schema["multipleOf"];
    const auto step = Decimal::of(value);
    if (!step || step->negative || step->is_zero())
      fail(path, fmt::format("multipleOf: found {}, expected a number above 0", value.dump()));
    if (!step->fraction.empty()) {
      fraction = step;
    } else if (step->whole.size() > kMostDigits ||
               std::stoi(step->whole.substr(0, step->whole.find_last_not_of('0') + 1)) > kMost) {
      fail(path, fmt::format("multipleOf: found {}; whole numbers are supported to {}, and those times tens, "
                             "hundreds and so on",
                             value.dump(), kMost));
    } else {
      range.multiple_of = std::stoi(step->whole);
      range.integer = true;
      range.as_doubles = value.is_number_float();
    }
  }
  const auto make = [&](GrammarBuilder& builder) {
    if (!fraction) return numbers_within(builder, range);
    const auto multiples = decimal_multiples(builder, range, *fraction);
    if (!multiples) {
      fail(path, fmt::format("multipleOf: found {}; with a fraction, up to 9 digits behind the point are "
                             "supported, and up to 1000 units of the last one",
                             schema["multipleOf"].dump()));
    }
    return *multiples;
  };
  Json excluded = Json::array();
  if (schema.contains(kAlso)) {
    for (const Json& one : schema[kAlso]) {
      if (!one.contains("not")) continue;
      for (const char* keyword : {"enum", "type", "multipleOf"}) {
        if (one["not"].contains(keyword)) excluded.push_back(one["not"]);
      }
    }
  }
  if (excluded.empty()) {
    if (!range.low && !range.high && range.multiple_of == 1 && !fraction)
      return range.integer ? json_.integer() : json_.number();
    return make(builder_);
  }
  constexpr size_t kDoubleDigits = 15;
  for (const auto& one : {range.low, range.high}) {
    if (one && !one->value.fraction.empty() &&
        one->value.whole.size() + one->value.fraction.size() > kDoubleDigits)
      fail(path, "not: numbers beside a bound of more than 15 digits cannot be told apart");
  }
  TextProduct product(builder_, make);
  product.add_condition([&](GrammarBuilder& builder) { return excluded_numbers(builder, excluded); });
  return product.texts([](uint32_t met) { return met == 0; });
}

}  // namespace qwench
