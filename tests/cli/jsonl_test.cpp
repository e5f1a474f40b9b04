#include "cli/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename F>
std::string error_in_lines(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Jsonl, ALineMustBeAnObject) {
  EXPECT_EQ(parse_line(R"({"a": 1})")["a"], 1);
  for (const char* line : {"", " ", "{", "[1]", "null", "3", R"({"a": 1} x)", R"({"a": 1e999})"}) {
    EXPECT_THAT(error_in_lines([&] { parse_line(line); }), HasSubstr("the line")) << line;
  }
}

TEST(Jsonl, UnknownFieldsAreNamed) {
  const Json object{{"ids", {1}}, {"idz", 1}};
  EXPECT_THAT(error_in_lines([&] { check_fields(object, {"ids"}); }), HasSubstr("\"idz\""));
  EXPECT_NO_THROW(check_fields(object, {"ids", "idz"}));
}

TEST(Jsonl, FieldsHaveTypes) {
  const Json object =
      Json::parse(R"({"text": "x", "flag": true, "ids": [1, 2], "number": 3, "nothing": null})");
  EXPECT_EQ(string_field(object, "text"), "x");
  EXPECT_TRUE(bool_field(object, "flag", false));
  EXPECT_TRUE(bool_field(object, "nothing", true));
  EXPECT_THAT(ids_field(object, "ids"), ElementsAre(1, 2));
  EXPECT_EQ(int_field(object, "number", 0, 3), 3);
  EXPECT_THAT(error_in_lines([&] { string_field(object, "ids"); }), HasSubstr("ids"));
  EXPECT_THAT(error_in_lines([&] { string_field(object, "nothing"); }), HasSubstr("missing"));
  EXPECT_THAT(error_in_lines([&] { bool_field(object, "text", true); }), HasSubstr("text"));
  EXPECT_THAT(error_in_lines([&] { int_field(object, "number", 0, 2); }), HasSubstr("number"));
  EXPECT_THAT(error_in_lines([&] { int_field(object, "text", 0, 2); }), HasSubstr("text"));
}

TEST(Jsonl, IdsAreWholeNumbersFromZero) {
  for (const char* ids :
       {"[1.5]", "[-1]", "[\"1\"]", "[2147483648]", "[[1]]", "[null]", "3", "\"1\"", "{}"}) {
    const Json object{{"ids", Json::parse(ids)}};
    EXPECT_THAT(error_in_lines([&] { ids_field(object, "ids"); }), HasSubstr("ids")) << ids;
  }
}

TEST(Jsonl, AnAnswerIsOneLineOfUtf8) {
  EXPECT_EQ(to_line({{"text", "a\nb\xFF"}}), "{\"text\":\"a\\nb\xEF\xBF\xBD\"}");
  EXPECT_EQ(to_line(error_line("no")), R"({"error":"no"})");
}

TEST(Terminal, PrintableFitsOneLine) {
  EXPECT_EQ(printable("a\nb\x1b[31m\xFF\xC2\x9Bz\xE4\xBD\xA0"), "a\\nb\\x1B[31m\\xFF\\xC2\\x9Bz\xE4\xBD\xA0");
}

}  // namespace
}  // namespace qwench::cli
