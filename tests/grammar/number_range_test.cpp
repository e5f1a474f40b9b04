#include "grammar/number_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "grammar/json_schema.h"
#include "grammar/stack_pool.h"
#include "sanitized.h"

namespace qwench {
namespace {

std::shared_ptr<const Grammar> compile(const Json& schema) { return compile_json_schema(schema); }

TEST(NumberRange, IntegersAgainstEachOne) {
  int compared = 0;
  for (const auto& [low, high] :
       {std::pair{0, 0}, {-5, 5}, {3, 17}, {-123, -45}, {99, 101}, {-1, 1000}, {7, 7}, {-200, 0}, {10, 99}}) {
    for (const bool exclusive : {false, true}) {
      if (exclusive && high - low < 2) continue;
      const auto grammar = compile(Json{{"type", "integer"},
                                        {exclusive ? "exclusiveMinimum" : "minimum", low},
                                        {exclusive ? "exclusiveMaximum" : "maximum", high}});
      for (int value = -1100; value <= 1100; ++value) {
        const bool inside = exclusive ? low < value && value < high : low <= value && value <= high;
        EXPECT_EQ(accepts(*grammar, std::to_string(value)), inside) << value << " in " << low << ", " << high;
        ++compared;
      }
      EXPECT_FALSE(accepts(*grammar, "-0"));
      EXPECT_FALSE(accepts(*grammar, "007"));
      EXPECT_FALSE(accepts(*grammar, "7.0"));
    }
  }
  EXPECT_EQ(compared, 16 * 2201);
}

TEST(NumberRange, OneSidedIntegers) {
  const auto from = compile({{"type", "integer"}, {"minimum", 95}});
  const auto to = compile({{"type", "integer"}, {"maximum", -95}});
  for (int value = -1100; value <= 1100; ++value) {
    EXPECT_EQ(accepts(*from, std::to_string(value)), value >= 95) << value;
    EXPECT_EQ(accepts(*to, std::to_string(value)), value <= -95) << value;
  }
  EXPECT_TRUE(accepts(*from, "999999999999999999"));
  EXPECT_TRUE(accepts(*to, "-999999999999999999"));
}

TEST(NumberRange, BoundsThatAreNoIntegersHoldForIntegers) {
  const auto grammar = compile({{"type", "integer"}, {"minimum", 1.5}, {"exclusiveMaximum", 4.5}});
  for (int value = -10; value <= 10; ++value)
    EXPECT_EQ(accepts(*grammar, std::to_string(value)), value >= 2 && value <= 4) << value;
}

TEST(NumberRange, DecimalsAgainstEachOne) {
  int compared = 0;
  const int apart = test::kSanitized ? 25 : 5;
  for (const auto& [low, high] :
       {std::pair{-1.5, 2.25}, {0.0, 1.0}, {0.125, 0.5}, {-3.0, -1.75}, {9.9, 10.1}}) {
    for (const bool exclusive : {false, true}) {
      const auto grammar = compile(Json{{"type", "number"},
                                        {exclusive ? "exclusiveMinimum" : "minimum", low},
                                        {exclusive ? "exclusiveMaximum" : "maximum", high}});
      for (int thousandths = -12000; thousandths <= 12000; thousandths += apart) {
        char text[32];
        std::snprintf(text, sizeof text, "%.3f", thousandths / 1000.0);
        const double value = std::stod(text);
        if (std::string_view(text) == "-0.000") continue;
        const bool inside = exclusive ? low < value && value < high : low <= value && value <= high;
        EXPECT_EQ(accepts(*grammar, text), inside) << text << " in " << low << ", " << high << exclusive;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 10 * (24000 / apart + 1));
}

TEST(NumberRange, MultiplesAgainstEachOne) {
  const auto any = compile({{"type", "integer"}, {"multipleOf", 7}});
  const auto within = compile({{"type", "integer"}, {"multipleOf", 12}, {"minimum", -100}, {"maximum", 250}});
  for (int value = -1100; value <= 1100; value += test::kSanitized ? 11 : 1) {
    EXPECT_EQ(accepts(*any, std::to_string(value)), value % 7 == 0) << value;
    EXPECT_EQ(accepts(*within, std::to_string(value)), value % 12 == 0 && value >= -100 && value <= 250)
        << value;
  }
}

TEST(NumberRange, DecimalsAreReadExactly) {
  const auto text = [](const Json& number) {
    const auto value = Decimal::of(number);
    return value ? (value->negative ? "-" : "") + value->whole + "." + value->fraction : "none";
  };
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(-1e20), "-100000000000000000000.");
  EXPECT_EQ(text(1.5e-7), "0.00000015");
  EXPECT_EQ(text(-0.0), "0.");
  EXPECT_EQ(text(1200), "1200.");
  EXPECT_EQ(text(1e23), "99999999999999991611392.");
  EXPECT_EQ(text(Json::parse("9007199254740993")), "9007199254740993.");
  EXPECT_EQ(text(5e-324), "0." + std::string(323, '0') + "5");
  EXPECT_EQ(text("1"), "none");
}

/// Texts of 12 to 18 digits around a number.
std::vector<std::string> texts_around(double value) {
  std::vector<std::string> texts;
  for (int digits = 12; digits <= 18; ++digits) {
    for (int steps = -3; steps <= 3; ++steps) {
      double near = value;
      for (int i = 0; i < std::abs(steps); ++i) near = std::nextafter(near, steps < 0 ? -HUGE_VAL : HUGE_VAL);
      char text[64];
      std::snprintf(text, sizeof text, "%.*f", digits, near);
      texts.emplace_back(text);
    }
  }
  return texts;
}

TEST(NumberRange, BoundsHoldForTheDoublesThatTextsAreReadAs) {
  int accepted = 0;
  for (const auto& [low, high] : {std::pair{0.30000000000000004, 0.3000000000000002},
                                  {0.1, 0.1000000000000001},
                                  {0.1, 0.30000000000000004},
                                  {1234567890.1234567, 1234567890.1234571},
                                  {999.9999999999999, 1000.5},
                                  {999.25, 1000.0},
                                  {-0.30000000000000004, 1e-20},
                                  {-1000.0, -999.9999999999998},
                                  {0.00000000000001, 1000.0}}) {
    for (const bool exclusive : {false, true}) {
      const auto grammar = compile(Json{{"type", "number"},
                                        {exclusive ? "exclusiveMinimum" : "minimum", low},
                                        {exclusive ? "exclusiveMaximum" : "maximum", high}});
      for (const double bound : {low, high}) {
        for (const std::string& text : texts_around(bound)) {
          const double value = std::stod(text);
          const bool inside = exclusive ? low < value && value < high : low <= value && value <= high;
          if (!accepts(*grammar, text)) continue;
          EXPECT_TRUE(inside) << text << " in " << low << ", " << high << exclusive;
          ++accepted;
        }
      }
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_TRUE(accepts(*compile({{"exclusiveMinimum", 0.1}, {"exclusiveMaximum", 0.1000000000000001}}),
                      "0.10000000000000003"));
}

TEST(NumberRange, LargeBoundsAreExact) {
  const auto any = compile(
      {{"type", "number"}, {"minimum", -1.7976931348623157e308}, {"maximum", 1.7976931348623157e308}});
  EXPECT_TRUE(accepts(*any, "-12.5"));
  EXPECT_TRUE(accepts(*any, "999999999999999"));
  const auto tight = compile({{"type", "integer"}, {"minimum", 1e23}, {"maximum", 1e23}});
  EXPECT_TRUE(accepts(*tight, "99999999999999991611392"));  // what the double is
  EXPECT_FALSE(accepts(*tight, "100000000000000000000000"));
  const auto between = compile(
      {{"type", "number"}, {"exclusiveMinimum", 9007199254740992}, {"exclusiveMaximum", 9007199254740994}});
  EXPECT_TRUE(accepts(*between, "9007199254740993"));
  EXPECT_FALSE(accepts(*between, "9007199254740994"));
  const auto above = compile({{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 3e-20}});
  EXPECT_TRUE(accepts(*above, "0.00000000000000000003"));
  EXPECT_FALSE(accepts(*above, "0.00000000000000000000"));
}

/// accepts() for many texts of one grammar.
class Acceptor {
 public:
  explicit Acceptor(const Json& schema)
      : pool_(compile(schema), [](const std::string&) { return std::optional<TokenId>(); }) {}

  bool operator()(std::string_view text) {
    StackPool::StateId state = pool_.start();
    for (const char byte : text) state = pool_.step(state, static_cast<uint8_t>(byte));
    return pool_.state(state).complete;
  }

 private:
  StackPool pool_;
};

TEST(NumberRange, StepsWithAFractionAgainstEachOne) {
  int multiples = 0;
  for (const double step : {0.5, 0.25, 0.1, 0.01, 0.05, 0.001, 0.3, 2.5}) {
    Acceptor any({{"type", "number"}, {"multipleOf", step}});
    Acceptor within({{"type", "number"}, {"multipleOf", step}, {"minimum", -2.25}, {"exclusiveMaximum", 7}});
    for (int thousandths = -12000; thousandths <= 12000; thousandths += test::kSanitized ? 35 : 5) {
      char text[32];
      std::snprintf(text, sizeof text, "%.3f", thousandths / 1000.0);
      std::string shortest = text;
      while (shortest.back() == '0') shortest.pop_back();
      if (shortest.back() == '.') shortest.pop_back();
      if (shortest == "-0") continue;
      const double value = std::stod(shortest);
      const bool is_multiple = value / step == std::floor(value / step);
      EXPECT_EQ(any(shortest), is_multiple) << shortest << " of " << step;
      EXPECT_EQ(within(shortest), is_multiple && value >= -2.25 && value < 7) << shortest << " of " << step;
      multiples += is_multiple;
    }
  }
  EXPECT_GT(multiples, test::kSanitized ? 100 : 1000);
}

TEST(NumberRange, StepsWithAFractionOfLargeNumbers) {
  const auto cents = compile({{"type", "number"}, {"multipleOf", 0.01}});
  for (const char* text : {"19", "19.5", "19.98", "123456.75", "-123456789.25", "1999"})
    EXPECT_TRUE(accepts(*cents, text)) << text;
  // To validators, which divide doubles, 19.99 / 0.01 is no whole number; what they make of 123456.78 is not
  // known here.
  for (const char* text : {"19.99", "123456.78", "1.005"}) EXPECT_FALSE(accepts(*cents, text)) << text;
  const auto whole = compile({{"type", "integer"}, {"multipleOf", 0.75}});
  for (int value = -20; value <= 20; ++value)
    EXPECT_EQ(accepts(*whole, std::to_string(value)), value % 3 == 0) << value;
}

TEST(NumberRange, LargeSteps) {
  for (const int step : {10, 50, 864, 1000, 86400, 1000000}) {
    Acceptor any({{"type", "integer"}, {"multipleOf", step}});
    Acceptor within(
        {{"type", "integer"}, {"multipleOf", step}, {"minimum", -3 * step}, {"exclusiveMaximum", 25 * step}});
    for (int units = -300; units <= 300; units += test::kSanitized ? 10 : 1) {
      for (const int off : {0, 1, step / 2, step - 10}) {
        const int value = units * step + off;
        EXPECT_EQ(any(std::to_string(value)), value % step == 0) << value << " of " << step;
        EXPECT_EQ(within(std::to_string(value)), value % step == 0 && value >= -3 * step && value < 25 * step)
            << value << " of " << step;
      }
    }
  }
}

TEST(NumberRange, WhatIsNoMultipleAndNoInteger) {
  const auto odd = compile({{"type", "integer"}, {"not", {{"multipleOf", 2}}}});
  for (int value = -50; value <= 50; ++value)
    EXPECT_EQ(accepts(*odd, std::to_string(value)), value % 2 != 0) << value;
  const auto fraction = compile({{"type", "number"}, {"not", {{"type", "integer"}}}});
  for (const char* text : {"0.5", "-1.25"}) EXPECT_TRUE(accepts(*fraction, text)) << text;
  for (const char* text : {"0", "1.0", "-7"}) EXPECT_FALSE(accepts(*fraction, text)) << text;
}

}  // namespace
}  // namespace qwench
