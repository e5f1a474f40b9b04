#include "grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "qwench/error.h"
#include "schema_cases.h"

namespace qwench {
namespace {

TEST(JsonSchema, Types) {
  check({
      {R"({"type":"null"})", {"null"}, {"", "0", "nul", "nullx", "false"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"True", "0", "\"true\""}},
      {R"({"type":"integer"})",
       {"0", "-1", "17", "123456789012345678"},
       {"-0", "01", "1.0", "1e3", "+1", "", "-", "\"1\""}},
      {R"({"type":"number"})",
       {"0", "-0", "1.5", "-1.25e-3", "2E+10", "12"},
       {".5", "1.", "1e", "01", "--1", "NaN", "Infinity", "1e999"}},
      {R"({"type":"string"})",
       {R"("")", R"("a b")", R"("é中😃")", R"("\n\"\\\/\u00e9\ud83d\ude03")"},
       {R"(")", "\"\n\"", R"("\x")", R"("\ud83d")", R"("\ude03\ud83d")", "\"\xC3\"", "\"\xED\xA0\x80\"",
        "\"\x01\""}},
      {R"({"type":["string","null"]})", {"null", "\"x\""}, {"1", "[]"}},
      {R"({"type":"array"})",
       {"[]", "[1, \"a\", [null]]", "[\n  1,\n  2\n]", "[{}]"},
       {"[", "[,]", "[1,]", "[1  ,2]"}},
      {R"({"type":"object"})",
       {"{}", R"({"a":1})", R"({"a": {"b": [true]}, "c": null})", "{\n  \"a\": 1\n}"},
       {"{a:1}", R"({"a"})", R"({"a":1,})", "[]", R"({"a" : 1})"}},
      {"true", {"1", "{}", "\"a\"", "[[[]]]"}, {"", "{"}},
      {"{}", {"1", "null"}, {"nul"}},
      {R"({"title":"T","description":"d","default":5,"$comment":"c","examples":[1]})", {"\"x\""}, {}},
  });
}

TEST(JsonSchema, EnumAndConst) {
  check({
      {R"({"enum":["a","b\n\"",1,1.5,null,true,{"x":[1,2]}]})",
       {"\"a\"", R"("b\n\"")", "1", "1.5", "null", "true", R"({"x":[1,2]})", R"({"x": [1, 2]})"},
       {"\"c\"", "2", "false", R"({"x":[1]})"}},
      {R"({"const":"é"})", {"\"é\""}, {"\"e\"", "é"}},
      {R"({"type":"string","enum":["a",1,null]})", {"\"a\""}, {"1", "null"}},
      {R"({"type":"integer","enum":[1,1.5,2.0,"x"],"minimum":1})", {"1"}, {"1.5", "\"x\""}},
      {R"({"enum":["ab","abc","b"],"pattern":"^a","type":"string"})", {"\"ab\"", "\"abc\""}, {"\"b\""}},
      {R"({"enum":[1,2],"const":2})", {"2"}, {"1"}},
  });
}

TEST(JsonSchema, StringsByLengthPatternAndFormat) {
  check({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"中é😃\"", R"("\n\u00e9")", R"("\ud83d\ude03x")"},
       {"\"a\"", "\"abcd\"", "\"\""}},
      {R"({"minLength":1})", {"\"a\"", "\"abcdefgh\""}, {"\"\"", "1"}},
      {R"({"type":"string","maxLength":0})", {"\"\""}, {"\"a\""}},
      {R"({"type":"string","pattern":"^[a-z]+\\d$"})", {"\"ab1\""}, {"\"ab\"", "\"1\"", "\"ab1x\""}},
      {R"({"type":"string","pattern":"b"})", {"\"abc\"", "\"b\"", R"("\nb\"")"}, {"\"a\"", "\"\""}},
      {R"({"type":"string","pattern":"^\"\\\\\n$"})", {R"("\"\\\n")"}, {"\"\"\""}},
      {R"({"type":"string","format":"date"})",
       {"\"2024-02-29\"", "\"2023-12-31\"", "\"2000-02-29\"", "\"0001-01-01\""},
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-13-01\"", "\"23-01-01\"",
        "\"0000-01-01\""}},
      {R"({"type":"string","format":"time"})",
       {"\"23:59:59Z\"", "\"00:00:00.125+01:30\""},
       {"\"24:00:00Z\"", "\"12:00Z\""}},
      {R"({"type":"string","format":"date-time"})",
       {"\"2024-01-02T03:04:05Z\""},
       {"\"2024-01-02\"", "\"2024-01-02 03:04:05Z\""}},
      {R"({"type":"string","format":"uuid"})",
       {"\"123e4567-e89b-12d3-a456-426614174000\""},
       {"\"123e4567e89b12d3a456426614174000\"", "\"g23e4567-e89b-12d3-a456-426614174000\""}},
      {R"({"type":"string","format":"email"})",
       {"\"a.b+c@example.org\""},
       {"\"a@b\"", "\"@b.c\"", "\"a b@c.de\""}},
      {R"({"type":"string","format":"ipv4"})",
       {"\"192.168.0.1\"", "\"0.0.0.0\""},
       {"\"256.1.1.1\"", "\"1.2.3\"", "\"01.2.3.4\""}},
      {R"({"type":"string","format":"ipv6"})",
       {"\"::\"", "\"::1\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6:7:8\"", "\"1:2:3:4:5:6:7::\"", "\"1::8\""},
       {"\"1:2:3\"", "\"1::2::3\"", "\":::\"", "\"1:2:3:4:5:6:7:8:9\"", "\"1:2:3:4:5:6:7::8\""}},
      {R"({"type":"string","format":"duration"})",
       {"\"P1D\"", "\"PT1H30M\"", "\"P2W\"", "\"P1Y2M3DT4H\""},
       {"\"P\"", "\"PT\"", "\"1D\""}},
      {R"({"type":"string","format":"hostname"})", {"\"a.example\""}, {"\"-a\"", "\"a..b\""}},
      {R"({"type":"string","format":"uri"})", {"\"https://a.b/c?d=e#f\""}, {"\"a b\"", "\"/x\""}},
  });
}

TEST(JsonSchema, Arrays) {
  check({
      {R"({"type":"array","items":{"type":"integer"}})",
       {"[]", "[1]", "[1,2,3]", "[1, 2]"},
       {"[\"a\"]", "[1,]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1,2,3]"},
       {"[]", "[1]", "[1,2,3,4]"}},
      {R"({"type":"array","items":{"type":"integer"},"maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"items":{"type":"null"},"maxItems":1})", {"[]", "[null]"}, {"[null,null]"}},
      {R"({"prefixItems":[{"type":"integer"},{"type":"string"}]})",
       {"[]", "[1]", "[1,\"a\"]"},
       {"[\"a\"]", "[1,\"a\",2]"}},
      {R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1})",
       {"[1]", "[1,\"a\"]", "[1,\"a\",null,null]"},
       {"[]", "[1,null]"}},
      {R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2})",
       {"[1,\"a\"]"},
       {"[1]", "[1,\"a\",1]"}},
      {R"({"prefixItems":[{"type":"integer"}],"minItems":3,"maxItems":3})",
       {"[1,2,3]", "[1,null,{}]"},
       {"[1,2]", "[1,2,3,4]"}},
      {R"({"prefixItems":[{"type":"integer"},{"type":"integer"}],"maxItems":1})", {"[]", "[1]"}, {"[1,2]"}},
  });
}

TEST(JsonSchema, Objects) {
  check({
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false})",
       {R"({"a":1,"b":"x"})", R"({"a": 1, "b": "x"})", "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"},
       {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"a":1,"b":"x","c":2})"}},
      {R"({"properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"required":["b"]})",
       {R"({"b":1})", R"({"a":1,"b":2})", R"({"b":1,"c":2})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"a":1,"c":2})", R"({,"b":1})", R"({"b":1,})", R"({"b":1,"d":1})"}},
      {R"({"properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"c":1})", R"({"a":1,"c":1})", R"({"b":1,"c":1})"},
       {R"({"c":1,"a":1})", R"({"a":1,"a":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"null"}})",
       {"{}", R"({"a":1})", R"({"x":null})", R"({"a":1,"x":null,"ab":null})", R"({"":null})"},
       {R"({"a":null})", R"({"x":1})", R"({"x":null,"a":1})", R"({"\u0061":null})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2})",
       {R"({"x":1})", R"({"x":1,"y":2})"},
       {"{}", R"({"x":1,"y":2,"z":3})"}},
      {R"({"type":"object","required":["a"]})", {R"({"a":[1]})", R"({"a":1,"b":2})"}, {"{}", R"({"b":1})"}},
      {R"({"type":"object","properties":{"a":false,"b":true}})", {"{}", R"({"b":{}})"}, {R"({"a":1})"}},
      {R"({"type":"object","additionalProperties":false})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"type":"object","properties":{"quote\"\\\n":{"const":1}}})", {R"({"quote\"\\\n":1})"}, {}},
  });
}

TEST(JsonSchema, Combinations) {
  check({
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
       {"1", "\"a\""},
       {"\"ab\"", "null"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}"}},
      {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"\""}, {"null"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
                    {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k"]}]})",
       {R"({"k":"a","x":1})", R"({"k":"b"})", R"({"k":"b","y":"z"})"},
       {R"({"k":"a"})", R"({"k":"b","x":1})"}},
      {R"({"oneOf":[{"type":"integer","maximum":3},{"type":"integer","minimum":5}]})", {"3", "5"}, {"4"}},
      {R"({"allOf":[{"type":"integer","minimum":3},{"maximum":5}]})", {"3", "5"}, {"2", "6"}},
      {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"null"},"a":{"minimum":5}},"required":["b"]}]})",
       {R"({"a":5,"b":null})"},
       {R"({"a":4,"b":null})", R"({"a":5})"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"b":{}}}]})",
       {"{}", R"({"a":1})"},
       {R"({"b":1})"}},
      {R"({"allOf":[{"enum":[1,2,3]},{"enum":[2,3,4]}]})", {"2", "3"}, {"1", "4"}},
      {R"({"anyOf":[{"type":"number"},false]})", {"1"}, {"\"a\""}},
  });
}

TEST(JsonSchema, References) {
  check({
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}})", {"1"}, {"\"a\""}},
      {R"({"type":"array","items":{"$ref":"#/definitions/x~1y"},"definitions":{"x/y":{"type":"null"}}})",
       {"[null]"},
       {"[1]"}},
      {R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["v","next"]})",
       {R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1,"next":{"v":2}})"}},
      {R"({"$defs":{"t":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["c"]}},"$ref":"#/$defs/t"})",
       {R"({"c":[]})", R"({"c":[{"c":[]},{"c":[{"c":[]}]}]})"},
       {"{}", R"({"c":[1]})"}},
      {R"({"$ref":"#/$defs/a","minimum":5,"description":"d","$defs":{"a":{"type":"integer","maximum":9}}})",
       {"5", "9"},
       {"4", "10"}},
      {R"({"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n","required":["x"]},"x":{"type":"integer"}}}},"$ref":"#/$defs/n"})",
       {"{}", R"({"n":{"x":1}})", R"({"n":{"n":{"x":2},"x":1}})"},
       {R"({"n":{}})"}},
      {R"({"$id":"https://a.b/c","$ref":"https://a.b/c#/$defs/a","$defs":{"a":{"type":"null"}}})",
       {"null"},
       {"1"}},
  });
}

TEST(JsonSchema, KeywordsThatAreNotSupportedAreNamedWithTheirPlace) {
  EXPECT_THAT(error_in_schema(R"({"properties":{"a":{"not":{"uniqueItems":true}}}})"),
              testing::AllOf(testing::HasSubstr("#/properties/a"), testing::HasSubstr("\"uniqueItems\"")));
  EXPECT_THAT(error_in_schema(R"({"items":{"$recursiveRef":"#"}})"),
              testing::AllOf(testing::HasSubstr("#/items"), testing::HasSubstr("$recursiveRef")));
  EXPECT_THAT(error_in_schema(R"({"not":{"items":{"const":1}},"unevaluatedItems":false})"),
              testing::HasSubstr("unevaluatedItems"));
  EXPECT_THAT(
      error_in_schema(R"({"items":{"dependentRequired":{"a":"b"}}})"),
      testing::HasSubstr(R"(#/items: dependentRequired: found "b" for "a", expected an array of names)"));
  EXPECT_THAT(error_in_schema(R"({"dependentSchemas":{"a":["b"]}})"), testing::HasSubstr("dependentSchemas"));
  EXPECT_THAT(error_in_schema(R"x({"patternProperties":{"(":true}})x"),
              testing::HasSubstr(R"x(the JSON schema: #/patternProperties/(: the pattern "(")x"));
  EXPECT_THAT(error_in_schema(R"({"uniqueItems":true})"), testing::HasSubstr("uniqueItems"));
  EXPECT_THAT(error_in_schema(R"({"if":{"format":"date"},"then":{"type":"null"}})"),
              testing::HasSubstr("format"));
  EXPECT_THAT(error_in_schema(R"({"type":"string","format":"card"})"), testing::HasSubstr("\"card\""));
  EXPECT_THAT(error_in_schema(R"({"const":"^(?<a>x)$","format":"regex"})"),
              testing::HasSubstr("whether \"^(?<a>x)$\" is of the format \"regex\" is not checked"));
  EXPECT_THAT(error_in_schema(R"x({"type":"string","pattern":"(?=a)"})x"), testing::HasSubstr("lookaround"));
  EXPECT_THAT(error_in_schema(R"({"type":"text"})"), testing::HasSubstr("\"text\""));
  EXPECT_THAT(error_in_schema(R"({"$ref":"http://a/b"})"), testing::HasSubstr("http://a/b"));
  EXPECT_THAT(error_in_schema(R"({"$ref":"#/$defs/no"})"), testing::HasSubstr("names nothing"));
  EXPECT_THAT(
      error_in_schema(R"({"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"time"}]})"),
      testing::HasSubstr("oneOf"));
  EXPECT_THAT(error_in_schema(R"({"type":"string","minLength":-1})"), testing::HasSubstr("minLength"));
  EXPECT_THAT(error_in_schema(R"({"type":"integer","minimum":"3"})"), testing::HasSubstr("minimum"));
  EXPECT_THAT(error_in_schema("[1]"), testing::HasSubstr("expected a schema"));
  EXPECT_THAT(error_in_schema("{"), testing::HasSubstr("not valid JSON"));
}

TEST(JsonSchema, WholeNumbersThatWouldBeRoundedAreRefused) {
  for (const char* schema :
       {R"({"const":12345678901234567890123})", R"({"enum":[1,{"const":-18446744073709551617}]})",
        R"({"items":{"minimum":12345678901234567890123}})", R"({"multipleOf":12345678901234567890123})"}) {
    EXPECT_THAT(error_in_schema(schema), testing::HasSubstr("more than 64 bits")) << schema;
  }
  EXPECT_THAT(error_in_schema(R"({"enum":[98765432109876543210987]})"),
              testing::HasSubstr("enum: the whole number 98765432109876543210987"));
  check({
      {R"({"const":18446744073709551615})", {"18446744073709551615"}, {"18446744073709551616"}},
      {R"({"const":-9223372036854775808})", {"-9223372036854775808"}, {}},
      {R"({"type":"integer","maximum":115792089237316195423570985008687907853269984665640564039457584007913129639935})",
       {"999999999999999999"},
       {}},
      {R"({"type":"integer","default":123456789012345678901234})", {"1"}, {}},
      {R"({"const":"123456789012345678901234"})", {R"("123456789012345678901234")"}, {}},
  });
}

TEST(JsonSchema, WhatNothingSatisfiesIsRefused) {
  for (const char* schema : {"false", R"({"enum":[]})", R"({"type":"integer","minimum":2,"maximum":1})",
                             R"({"allOf":[{"type":"null"},{"type":"string"}]})",
                             R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                             R"({"type":"array","minItems":2,"maxItems":1})",
                             R"({"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2})",
                             R"({"type":"object","properties":{"a":false},"required":["a"]})"}) {
    EXPECT_THAT(error_in_schema(schema), testing::HasSubstr("no text satisfies")) << schema;
  }
}

TEST(JsonSchema, WhatGrowsWithoutEndIsRefused) {
  EXPECT_NE(error_in_schema(R"({"$ref":"#"})"), "");
  EXPECT_NE(error_in_schema(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})"), "");
  EXPECT_NE(error_in_schema(R"({"allOf":[{"$ref":"#"}],"type":"object"})"), "");
  EXPECT_THAT(error_in_schema(R"({"type":"string","maxLength":1000000})"), testing::HasSubstr("too large"));
  std::string doubling = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "{\"$ref\":\"#/$defs/d" + std::to_string(i + 1) + "\"}";
    doubling += "\"d" + std::to_string(i) + "\":{\"allOf\":[" + next + "," + next + "]},";
  }
  EXPECT_NE(error_in_schema(doubling + R"("d40":{"type":"null"}}})"), "");
  std::string deep;
  for (int i = 0; i < 150; ++i) deep += R"({"items":)";
  EXPECT_NE(error_in_schema(deep + "{}" + std::string(150, '}')), "");
}

TEST(JsonSchema, AnyObject) {
  const auto grammar = compile_json_object();
  EXPECT_TRUE(accepts(*grammar, R"({"a": [1, {"b": "c"}], "d": -1.5e3})"));
  EXPECT_FALSE(accepts(*grammar, "[]"));
  EXPECT_FALSE(accepts(*grammar, "{} "));
}

}  // namespace
}  // namespace qwench
