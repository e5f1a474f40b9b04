#include "core/json.h"
#include "core/large_integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "qwench/error.h"

namespace qwench {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "x.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::malformed);
    return error.what();
  }
  return "";
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": 2})", "x.json").dump(), R"({"b":1,"a":2})");
}

TEST(Json, NamesTheFileAndTheByteOfAnError) {
  EXPECT_THAT(error_of(R"({"a": })"), testing::StartsWith("x.json: not valid JSON at byte 7"));
  EXPECT_THAT(error_of("{\"a\": NaN}"), testing::HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("\"\xFF\""), testing::HasSubstr("not valid JSON"));
}

TEST(Json, DepthIsBoundedAndBracketsInStringsDoNotCount) {
  EXPECT_THAT(error_of(std::string(100000, '[')), testing::HasSubstr("nested more than 200 deep"));
  EXPECT_EQ(parse_json("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '[') + "\"", "x")
                .get<std::string>()
                .size(),
            2001U);
}

TEST(Json, OfAKeyThatIsThereTwiceTheLastValueCounts) {
  EXPECT_EQ(parse_json(R"({"a": {"x": 1}, "b": 2, "a": [3]})", "x").dump(), R"({"a":[3],"b":2})");
}

TEST(Json, AKeyThatIsThereTwiceCanBeAnErrorThatNamesItsPlace) {
  const auto place_of = [](const std::string& text) -> std::string {
    try {
      parse_json_exactly(text, "x", 200, SameKeys::are_errors);
    } catch (const RepeatedKey& repeated) {
      EXPECT_EQ(repeated.what(), "x: " + repeated.place() + ": an object has this key twice");
      return repeated.place();
    }
    return "";
  };
  EXPECT_EQ(place_of(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})"), "");
  EXPECT_EQ(place_of(R"({"a": 1, "b": 2, "a": 1})"), "a");
  EXPECT_EQ(place_of(R"({"a": [{"x": 1}, {"b": {"c": 1, "d": 2, "c": 3}}]})"), "a[1].b.c");
  EXPECT_EQ(place_of(R"([[], [{"a": [], "a": {}}]])"), "[1][0].a");
  EXPECT_EQ(place_of(R"({"a": {"x": 1}, "\u0061": 1})"), "a") << "one key, spelt in two ways";
}

TEST(Json, NumbersOutOfRangeAreErrors) {
  EXPECT_THAT(error_of("[1e999]"), testing::HasSubstr("a number out of range at byte 6"));
}

TEST(Json, IntegersBeyond64BitsCanBeKept) {
  const std::string text =
      R"({"a":123456789012345678901234567890,"b":[-9223372036854775809,18446744073709551615],"c":1.5,"d":"x"})";
  const Json kept = parse_json_exactly(text, "x");
  EXPECT_EQ(json_line(kept), text);
  EXPECT_EQ(large_integer(kept["a"]), "123456789012345678901234567890");
  EXPECT_EQ(large_integer(kept["b"][0]), "-9223372036854775809");
  EXPECT_EQ(kept["b"][1].get<uint64_t>(), UINT64_MAX);
  EXPECT_FALSE(large_integer(kept["c"]));
  EXPECT_STREQ(json_type(kept["a"]), "number");
  EXPECT_TRUE(has_large_integers(kept));
  EXPECT_FALSE(has_large_integers(kept["d"]));
  EXPECT_EQ(with_doubles(kept), parse_json(text, "x"));
  EXPECT_TRUE(parse_json(text, "x")["a"].is_number_float());
  EXPECT_THAT(json_line(parse_json_exactly("[1e20]", "x")), "[1e+20]");
}

// A tree that looks each key up among those before it takes minutes for this megabyte.
TEST(Json, ManyKeysInOneObjectTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text + "\"last\":1}", "x").size(), 100001U);
  EXPECT_EQ(parse_json_exactly(text + "\"last\":1}", "x", 200, SameKeys::are_errors).size(), 100001U);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10.0);
}

}  // namespace
}  // namespace qwench
