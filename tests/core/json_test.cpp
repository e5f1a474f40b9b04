#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace qwench
