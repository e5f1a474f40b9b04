#include "grammar/number_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "grammar/json_schema.h"
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
  for (const auto& [low, high] :
       {std::pair{-1.5, 2.25}, {0.0, 1.0}, {0.125, 0.5}, {-3.0, -1.75}, {9.9, 10.1}}) {
    for (const bool exclusive : {false, true}) {
      const auto grammar = compile(Json{{"type", "number"},
                                        {exclusive ? "exclusiveMinimum" : "minimum", low},
                                        {exclusive ? "exclusiveMaximum" : "maximum", high}});
      for (int thousandths = -12000; thousandths <= 12000; thousandths += 5) {
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
  EXPECT_EQ(compared, 10 * 4801);
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
  EXPECT_EQ(text(1e300), "none");
}

}  // namespace
}  // namespace qwench
