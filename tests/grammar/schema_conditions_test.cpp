#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qwench/error.h"
#include "schema_cases.h"

namespace qwench {
namespace {

TEST(JsonSchemaConditions, Not) {
  check({
      {R"({"not":{"type":["string","object","array"]}})", {"null", "1", "true"}, {"\"a\"", "{}", "[]"}},
      {R"({"type":"string","not":{"const":"no"}})", {"\"yes\"", "\"n\"", "\"noo\"", "\"\""}, {"\"no\"", "1"}},
      {R"({"type":"string","not":{"enum":["a","b"]},"maxLength":1})",
       {"\"c\"", "\"\"", "\"é\""},
       {"\"a\"", "\"b\"", "\"cc\""}},
      {R"({"type":"integer","not":{"const":7}})", {"6", "77", "-7", "0"}, {"7", "7.0"}},
      {R"({"type":"integer","minimum":1,"maximum":4,"not":{"enum":[2,3]}})", {"1", "4"}, {"2", "3", "5"}},
      {R"({"type":"string","not":{"pattern":"^[a-c]"}})", {"\"dab\"", "\"\""}, {"\"abc\"", "\"c\""}},
      {R"({"type":"boolean","not":{"const":true}})", {"false"}, {"true"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"not":{"required":["a","b"]}})",
       {"{}", R"({"a":1})", R"({"b":1})"},
       {R"({"a":1,"b":1})"}},
      {R"({"type":"integer","not":{"minimum":5}})", {"4", "-9"}, {"5", "6"}},
      {R"({"type":"string","not":{"anyOf":[{"maxLength":1},{"pattern":"x"}]}})",
       {"\"ab\""},
       {"\"a\"", "\"axb\""}},
      {R"({"not":{"not":{"type":"null"}}})", {"null"}, {"1"}},
      {R"({"type":"array","items":{"type":"integer","minimum":0,"maximum":9},"not":{"contains":{"const":3}}})",
       {"[]", "[1,2]"},
       {"[3]", "[1,3]"}},
  });
}

TEST(JsonSchemaConditions, IfThenElse) {
  check({
      {R"({"type":"object","properties":{"country":{"enum":["US","NL"]},"code":{"type":"string"}},
           "required":["country","code"],"additionalProperties":false,
           "if":{"properties":{"country":{"const":"US"}}},"then":{"properties":{"code":{"pattern":"^[0-9]{5}$"}}},
           "else":{"properties":{"code":{"pattern":"^[0-9]{4}[A-Z]{2}$"}}}})",
       {R"({"country":"US","code":"12345"})", R"({"country":"NL","code":"1234AB"})"},
       {R"({"country":"US","code":"1234AB"})", R"({"country":"NL","code":"12345"})"}},
      {R"({"type":"integer","minimum":0,"maximum":20,"if":{"maximum":9},"then":{"multipleOf":2},"else":{"multipleOf":5}})",
       {"0", "8", "10", "15"},
       {"3", "9", "12"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"if":{"required":["a"]},"then":{"required":["b"]}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":1})"},
       {R"({"a":1})"}},
      {R"({"type":"null","then":false,"else":false})", {"null"}, {}},
  });
}

TEST(JsonSchemaConditions, Dependencies) {
  check({
      {R"({"type":"object","properties":{"card":{"type":"integer"},"address":{"type":"null"}},"dependentRequired":{"card":["address"]}})",
       {"{}", R"({"address":null})", R"({"card":1,"address":null})"},
       {R"({"card":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependentSchemas":{"a":{"properties":{"b":{"minimum":5}},"required":["b"]}}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":5})"},
       {R"({"a":1})", R"({"a":1,"b":4})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependencies":{"a":["b"]}})",
       {R"({"a":1,"b":5})"},
       {R"({"a":1})"}},
  });
}

TEST(JsonSchemaConditions, OneOfWhoseAlternativesOverlap) {
  check({
      {R"({"oneOf":[{"type":"integer","maximum":10},{"type":"integer","minimum":5}]})",
       {"4", "11"},
       {"5", "7", "10"}},
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"oneOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":null})", R"({"b":null})"},
       {"{}", R"({"a":null,"b":null})"}},
  });
}

TEST(JsonSchemaConditions, OneOfAlternativesThatHaveAlternatives) {
  check({
      {R"({"oneOf":[{"anyOf":[{"type":"integer"},{"type":"null"}]},
                    {"oneOf":[{"type":"string","maxLength":1},{"type":"array","maxItems":0}]}]})",
       {"1", "null", "\"a\"", "[]"},
       {"\"ab\"", "[1]", "true"}},
      {R"({"oneOf":[{"$ref":"#/$defs/animal"},{"$ref":"#/$defs/plant"}],"$defs":{
           "animal":{"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}]},
           "cat":{"type":"object","properties":{"kind":{"const":"cat"}},"required":["kind"],"additionalProperties":false},
           "dog":{"type":"object","properties":{"kind":{"const":"dog"},"age":{"type":"integer"}},"required":["kind"],"additionalProperties":false},
           "plant":{"anyOf":[{"type":"object","properties":{"kind":{"const":"tree"}},"required":["kind"],"additionalProperties":false},
                             {"type":"null"}]}}})",
       {R"({"kind":"cat"})", R"({"kind":"dog","age":1})", R"({"kind":"tree"})", "null"},
       {R"({"kind":"cat","age":1})", R"({"kind":"bush"})", "{}"}},
      {R"({"oneOf":[{"anyOf":[{"type":"integer","maximum":5},{"type":"null"}]},{"type":["integer","string"],"minimum":3,"maxLength":1}]})",
       {"2", "6", "null", "\"a\""},
       {"3", "5"}},
  });
}

TEST(JsonSchemaConditions, OneOfDoesNotTakeNamesOfAPatternForForbidden) {
  EXPECT_THAT(
      error_in_schema(
          R"({"oneOf":[{"type":"object","properties":{"xa":{"type":"null"}},"required":["xa"],"additionalProperties":false},
                     {"type":"object","patternProperties":{"^x":{"type":"null"}},"additionalProperties":false}]})"),
      testing::HasSubstr("oneOf"));
}

TEST(JsonSchemaConditions, OneOfManyConstants) {
  Json labels = Json::array();
  for (int i = 0; i < 200; ++i) labels.push_back({{"const", "c" + std::to_string(i)}, {"title", "a label"}});
  const auto grammar = compile_json_schema(Json{{"oneOf", labels}});
  EXPECT_TRUE(accepts(*grammar, "\"c17\""));
  EXPECT_FALSE(accepts(*grammar, "\"c200\""));
}

TEST(JsonSchemaItems, UniqueItemsOfAList) {
  check({
      {R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":1})",
       {"[\"a\"]", "[\"c\",\"a\"]", "[\"b\",\"a\",\"c\"]"},
       {"[]", "[\"a\",\"a\"]", "[\"a\",\"b\",\"a\"]"}},
      {R"({"type":"array","items":{"enum":[0,1,2,3,4,5,6,7,8,9]},"uniqueItems":true,"maxItems":3})",
       {"[]", "[1,5,9]"},
       {"[1,1]", "[1,2,3,4]", "[5,1]"}},
      {R"({"type":"array","items":{"type":"boolean"},"uniqueItems":true})",
       {"[]", "[true,false]", "[false]"},
       {"[true,true]"}},
      {R"({"type":"array","items":{"type":"string"},"uniqueItems":true,"maxItems":1})", {"[\"a\"]"}, {}},
  });
}

TEST(JsonSchemaItems, UniqueItemsWhoseValuesAreEvident) {
  check({
      {R"({"type":"array","items":{"type":"integer","minimum":1,"exclusiveMaximum":46},"uniqueItems":true,"minItems":3,"maxItems":3})",
       {"[1,2,45]"},
       {"[1,1,2]", "[1,2,46]"}},
      {R"({"type":"array","items":{"$ref":"#/$defs/e"},"uniqueItems":true,"$defs":{"e":{"anyOf":[{"const":"a"},{"enum":["b",null]}]}}})",
       {R"(["b","a",null])"},
       {R"(["a","a"])"}},
      {R"({"type":"array","items":{"type":["boolean","null"]},"uniqueItems":true,"minItems":3})",
       {"[null,true,false]"},
       {"[null,true,null]"}},
  });
}

TEST(JsonSchemaItems, Contains) {
  check({
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5}})",
       {"[5]", "[1,6,2]"},
       {"[]", "[1,2]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"minContains":2,"maxContains":2})",
       {"[5,1,6]"},
       {"[5]", "[5,6,7]", "[1]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"const":1},"minItems":2,"maxItems":2})",
       {"[1,2]", "[2,1]"},
       {"[1]", "[2,2]", "[1,2,3]"}},
      {R"({"type":"array","items":{"type":"null"},"contains":{"const":1},"minContains":0})",
       {"[]", "[null]"},
       {"[1]"}},
  });
}

TEST(JsonSchemaItems, TuplesOfOlderDraftsAndJoinedOnes) {
  check({
      {R"({"type":"array","items":[{"type":"integer"},{"type":"null"}],"additionalItems":false,"minItems":2})",
       {"[1,null]"},
       {"[1]", "[1,null,1]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"unevaluatedItems":false})",
       {"[1]", "[]"},
       {"[1,1]"}},
      {R"({"allOf":[{"prefixItems":[{"type":"integer"}]},{"prefixItems":[{"minimum":3},{"type":"null"}],"items":false}],"type":"array","minItems":2})",
       {"[3,null]"},
       {"[2,null]", "[3]", "[3,null,1]"}},
  });
}

TEST(JsonSchemaStrings, SeveralConditionsAtOnce) {
  check({
      {R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"abc\""},
       {"\"a\"", "\"abcd\"", "\"A1\""}},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}],"type":"string"})",
       {"\"ab\"", "\"xbya\""},
       {"\"a\"", "\"b\""}},
      {R"({"type":"string","format":"email","maxLength":8})", {"\"a@bc.de\""}, {"\"abcd@bc.de\"", "\"a\""}},
      {R"({"type":"string","format":"date","pattern":"^2024-"})", {"\"2024-02-29\""}, {"\"2023-01-01\""}},
  });
}

TEST(JsonSchemaStrings, LookaheadsAtTheBeginning) {
  check({
      {R"x({"type":"string","pattern":"^(?=.*[A-Z])(?=.*\\d)[A-Za-z\\d]{4,6}$"})x",
       {"\"aB3d\"", "\"1AAAAA\""},
       {"\"abcd\"", "\"aBcd\"", "\"ab3d\"", "\"aB3\""}},
      {R"x({"type":"string","pattern":"^(?!\\.)(?!.*\\.\\.)[a-z.]+$"})x",
       {"\"a.b\"", "\"ab.\""},
       {"\".a\"", "\"a..b\""}},
      {R"x({"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"})x",
       {"\"1.5\"", "\"-0\"", "\"+.5\""},
       {"\"\"", "\"-\"", "\".\"", "\"a\""}},
      {R"x({"enum":["aB","ab"],"pattern":"^(?=.*[A-Z])[a-zA-Z]+$"})x", {"\"aB\""}, {"\"ab\""}},
  });
  for (const char* pattern : {"^(?=a)b|c", "a(?=b)", "^(?<=a)b", "^(a|(?!b))c"}) {
    EXPECT_THROW(compile_json_schema(Json{{"type", "string"}, {"pattern", pattern}}), Error) << pattern;
  }
}

TEST(JsonSchemaStrings, HighLengthsBesideOtherConditions) {
  check({{R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})",
          {"\"https://a.b/c\""},
          {"\"\"", "\"a\""}}});
}

TEST(JsonSchemaStrings, FormatsThatSayHowAProgramHoldsAValueChangeNothing) {
  check({
      {R"({"type":"string","format":"password"})", {"\"a\""}, {}},
      {R"({"type":"integer","format":"int32"})", {"2147483647", "-2147483648"}, {"2147483648"}},
      {R"({"type":"integer","format":"int64"})", {"2147483648"}, {}},
      {R"({"type":"string","format":"byte"})", {"\"\"", "\"YWI=\"", "\"YWJj\""}, {"\"YWI\"", "\"=\""}},
  });
}

TEST(JsonSchemaNumbers, StepsAreJoinedAndOldBoundsUnderstood) {
  check({
      {R"({"type":"integer","allOf":[{"multipleOf":4},{"multipleOf":6}],"minimum":1,"maximum":40})",
       {"12", "24", "36"},
       {"4", "6", "20"}},
      {R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", {"4"}, {"3"}},
      {R"({"type":"integer","minimum":3,"exclusiveMinimum":false})", {"3"}, {"2"}},
  });
}

TEST(JsonSchemaReferences, Anchors) {
  check({{R"({"$ref":"#item","$defs":{"x":{"$anchor":"item","type":"null"}}})", {"null"}, {"1"}}});
}

TEST(JsonSchemaValues, TheOrderOfMembersMeansNothing) {
  check({
      {R"({"allOf":[{"const":{"a":1,"b":2}},{"const":{"b":2,"a":1}}]})", {R"({"a":1,"b":2})"}, {"{}"}},
      {R"({"allOf":[{"enum":[{"a":1,"b":2},1]},{"enum":[{"b":2,"a":1},2]}]})",
       {R"({"a":1,"b":2})"},
       {"1", "2"}},
      {R"({"type":"array","items":{"enum":[{"a":1,"b":2},{"b":2,"a":1},0]},"uniqueItems":true,"minItems":2})",
       {R"([{"a":1,"b":2},0])"},
       {R"([{"a":1,"b":2},{"b":2,"a":1}])"}},
  });
  // The same value under two alternatives is valid under none.
  check({{R"({"oneOf":[{"const":{"a":1,"b":2}},{"const":{"b":2,"a":1}},{"const":0}]})",
          {"0"},
          {R"({"a":1,"b":2})", R"({"b":2,"a":1})"}}});
}

TEST(JsonSchemaValues, ListedValuesAreComparedAsValuesWithWhatStandsBesideThem) {
  check({
      {R"({"type":"integer","minimum":0,"enum":[1e20,1.5,12345678901234567890,1.0,-1]})",
       {"1e+20", "12345678901234567890", "1.0"},
       {"1.5", "-1"}},
      {R"({"const":1500.0,"multipleOf":100})", {"1500.0"}, {"1500"}},
      {R"({"enum":[0.12345678901234568,1e-7,2],"maximum":1})", {"0.12345678901234568", "1e-07"}, {"2"}},
      {R"({"enum":[{"b":1,"a":2},{"a":"x"}],"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}})",
       {R"({"b":1,"a":2})"},
       {R"({"a":"x"})"}},
      {R"({"enum":[{"a":1,"z":2},{"z":1}],"properties":{"a":{"type":"integer"}},"required":["a"]})",
       {R"({"a":1,"z":2})"},
       {R"({"z":1})"}},
      {R"({"enum":[[1,2,3],["x"]],"prefixItems":[{"type":"integer"}],"uniqueItems":true})",
       {"[1,2,3]"},
       {R"(["x"])"}},
      {R"({"enum":[[1,1.0],[1,true]],"uniqueItems":true})", {"[1,true]"}, {"[1,1.0]"}},
      {R"({"enum":["a\u0001","\u007f\"\\/\b"],"minLength":3})", {"\"\x7F\\\"\\\\/\\b\""}, {R"("a\u0001")"}},
      {R"({"enum":["a",{"b":1},[2],3],"not":{"enum":["a",{"b":1.0}]}})",
       {"[2]", "3"},
       {"\"a\"", R"({"b":1})"}},
      {R"({"enum":[1,2,3,4],"oneOf":[{"maximum":2},{"minimum":2}],"if":{"const":3},"then":false})",
       {"1", "4"},
       {"2", "3"}},
      {R"({"enum":[{"a":1},{"a":1,"b":2}],"properties":{"a":true},"unevaluatedProperties":false})",
       {R"({"a":1})"},
       {R"({"a":1,"b":2})"}},
      {R"({"$ref":"#/$defs/small","enum":["abc","abcd"],"$defs":{"small":{"maxLength":3}}})",
       {"\"abc\""},
       {"\"abcd\""}},
      {R"({"enum":["2024-02-29","2023-02-29"],"format":"date"})", {"\"2024-02-29\""}, {"\"2023-02-29\""}},
      {R"({"enum":["1990-12-31T23:59:60Z","1990-12-31T15:59:60-08:00","1990-12-31t23:59:59.1234567z",
                   "1990-12-31T22:59:60Z","1990-12-31T23:59:61Z","1990-12-31 23:59:59Z"],"format":"date-time"})",
       {"\"1990-12-31T23:59:60Z\"", "\"1990-12-31T15:59:60-08:00\"", "\"1990-12-31t23:59:59.1234567z\""},
       {"\"1990-12-31T22:59:60Z\"", "\"1990-12-31T23:59:61Z\"", "\"1990-12-31 23:59:59Z\""}},
      {R"({"enum":["01:29:60+01:30","23:59:60z","01:29:60-01:30","24:00:00Z"],"format":"time"})",
       {"\"01:29:60+01:30\"", "\"23:59:60z\""},
       {"\"01:29:60-01:30\"", "\"24:00:00Z\""}},
      {R"({"enum":["\"a b\"@x.org","\"a@b\"@x.org","te~st@x","a@[127.0.0.1]","a@[IPv6:::1]",
                   ".a@x.org","a..b@x.org","a@[127.0.0.300]","a b@x.org"],"format":"email"})",
       {R"("\"a b\"@x.org")", R"("\"a@b\"@x.org")", R"("te~st@x")", R"("a@[127.0.0.1]")",
        R"("a@[IPv6:::1]")"},
       {R"(".a@x.org")", R"("a..b@x.org")", R"("a@[127.0.0.300]")", R"("a b@x.org")"}},
      {R"({"enum":["mailto:a@b.c","http://[::1]:80/%20?q#f","urn:a:b","a","http://a b"],"format":"uri"})",
       {R"("mailto:a@b.c")", R"("http://[::1]:80/%20?q#f")", R"("urn:a:b")"},
       {R"("a")", R"("http://a b")"}},
      {R"({"enum":["","../a?b","#f","a b"],"format":"uri-reference"})",
       {R"("")", R"("../a?b")", R"("#f")"},
       {R"("a b")"}},
      {R"({"enum":["http://ä.de/ö","ä b"],"format":"iri"})", {R"("http://ä.de/ö")"}, {R"("ä b")"}},
      {R"({"enum":["::ffff:1.2.3.4","1::2::3"],"format":"ipv6"})", {R"("::ffff:1.2.3.4")"}, {R"("1::2::3")"}},
      {R"({"enum":["P1234567890D","P1S"],"format":"duration"})", {R"("P1234567890D")"}, {R"("P1S")"}},
      {R"({"enum":["/ä b/~0","/~2"],"format":"json-pointer"})", {R"("/ä b/~0")"}, {R"("/~2")"}},
      {R"({"allOf":[{"enum":[1,2,[1]]},{"type":"number","exclusiveMinimum":1}]})", {"2"}, {"1", "[1]"}},
  });
}

TEST(JsonSchemaUnevaluated, OnlyWhatTheSchemaItselfEvaluatesCounts) {
  check({
      {R"({"type":"object","allOf":[{"properties":{"a":{"const":1}},"unevaluatedProperties":false},{"properties":{"b":{"const":2}}}]})",
       {"{}", R"({"a":1})"},
       {R"({"b":2})", R"({"a":1,"b":2})"}},
      {R"({"$ref":"#/$defs/base","properties":{"b":{"const":2}},"$defs":{"base":{"type":"object","properties":{"a":{"const":1}},"unevaluatedProperties":false}}})",
       {R"({"a":1})"},
       {R"({"b":2})"}},
      {R"({"type":"object","properties":{"a":{"const":1}},"allOf":[{"unevaluatedProperties":false}]})",
       {"{}"},
       {R"({"a":1})"}},
      {R"({"type":"object","allOf":[{"properties":{"a":{"const":1}}}],"properties":{"b":{"const":2}},"unevaluatedProperties":false})",
       {R"({"b":2,"a":1})"},
       {R"({"c":1})"}},
      {R"({"type":"object","properties":{"x":{"const":1}},"not":{"properties":{"k":{"const":1}},"required":["k"]},"unevaluatedProperties":false})",
       {"{}", R"({"x":1})"},
       {R"({"k":2})"}},
      {R"({"type":"object","if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"x":{"const":1}}},"else":{"properties":{"y":{"const":1}}},"unevaluatedProperties":false})",
       {R"({"k":1})", R"({"k":1,"x":1})", R"({"y":1})"},
       {R"({"k":2})", R"({"x":1})", R"({"k":1,"y":1})"}},
      {R"({"type":"object","not":{"not":{"properties":{"a":{"const":1}}}},"unevaluatedProperties":false})",
       {"{}"},
       {R"({"a":1})"}},
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":1}},"required":["b"]}],"unevaluatedProperties":false})",
       {R"({"a":1})", R"({"b":1})"},
       {"{}", R"({"c":1})"}},
      {R"({"type":"object","oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":1}},"required":["b"]}],"unevaluatedProperties":{"type":"null"}})",
       {R"({"a":1})", R"({"b":1,"c":null})"},
       {R"({"a":1,"c":1})", R"({"a":1,"b":1})"}},
      {R"({"type":"object","properties":{"a":{"const":1}},"dependentSchemas":{"a":{"properties":{"b":{"const":2}}}},"unevaluatedProperties":false})",
       {R"({"a":1,"b":2})"},
       {R"({"b":2})"}},
  });
}

TEST(JsonSchemaUnevaluated, BesideListedValues) {
  check(
      {{R"({"unevaluatedProperties":false,"allOf":[{"enum":[null,{"a":1},{"b":1}]},{"properties":{"a":true}}]})",
        {"null", R"({"a":1})"},
        {R"({"b":1})"}}});
}

TEST(JsonSchemaUnevaluated, Items) {
  check({
      {R"({"type":"array","allOf":[{"prefixItems":[{"const":1}],"unevaluatedItems":false},{"prefixItems":[true,{"const":2}]}]})",
       {"[]", "[1]"},
       {"[1,2]"}},
      {R"({"type":"array","allOf":[{"prefixItems":[{"const":1},{"const":2}]}],"unevaluatedItems":false,"minItems":1})",
       {"[1]", "[1,2]"},
       {"[1,2,3]"}},
      {R"({"type":"array","contains":{"const":7},"unevaluatedItems":{"const":1},"maxItems":3})",
       {"[7]", "[1,7]", "[7,7,1]"},
       {"[1]", "[7,2]"}},
      {R"({"type":"array","prefixItems":[{"const":1}],"contains":{"const":7},"unevaluatedItems":false,"minItems":2})",
       {"[1,7]", "[1,7,7]"},
       {"[1]", "[7]", "[1,2]", "[7,7]"}},
      {R"({"type":"array","anyOf":[{"prefixItems":[{"const":1}]},{"items":{"const":2}}],"unevaluatedItems":false})",
       {"[]", "[1]", "[2,2]"},
       {"[1,1]", "[3]"}},
  });
}

TEST(JsonSchemaReferences, OfResourcesInsideOthers) {
  check({
      {R"({"$defs":{"A":{"$id":"http://x.org/a","$defs":{"v":{"const":1}},"type":"object","properties":{"n":{"$ref":"#/$defs/v"}},"required":["n"],"additionalProperties":false},"v":{"const":2}},"$ref":"#/$defs/A"})",
       {R"({"n":1})"},
       {R"({"n":2})"}},
      {R"({"type":"object","$defs":{"v":{"const":1}},"properties":{"x":{"$id":"inner.json","$defs":{"v":{"const":2}},"type":"array","items":{"$ref":"#/$defs/v"}}}})",
       {R"({"x":[2]})"},
       {R"({"x":[1]})"}},
      {R"({"$defs":{"A":{"$id":"http://x.org/a","$anchor":"n","const":1},"B":{"$anchor":"n","const":2}},"$ref":"#n"})",
       {"2"},
       {"1"}},
      {R"({"$defs":{"A":{"$id":"http://x.org/a","$anchor":"n","const":1},"B":{"$anchor":"n","const":2}},"$ref":"http://x.org/a#n"})",
       {"1"},
       {"2"}},
      {R"({"properties":{"z":{"const":{"$anchor":"q","const":5}}},"$defs":{"q":{"$anchor":"q","const":7}},"$ref":"#q"})",
       {"7"},
       {"5"}},
      {R"({"$id":"http://x/s/t","$defs":{"a":{"$id":"../u","const":1}},"$ref":"/u"})", {"1"}, {"2"}},
      {R"({"$id":"urn:a:b","$defs":{"a":{"const":1}},"$ref":"urn:a:b#/$defs/a"})", {"1"}, {"2"}},
      {R"({"components":{"schemas":{"A":{"$ref":"#/components/schemas/B"},"B":{"const":3}}},"$ref":"#/components/schemas/A"})",
       {"3"},
       {"1"}},
      {R"({"$defs":{"a/b~c %\"":{"const":1}},"$ref":"#/$defs/a~1b~0c%20%25%22"})", {"1"}, {"2"}},
      {R"({"type":"object","$dynamicAnchor":"node","properties":{"c":{"type":"array","items":{"$dynamicRef":"#node"}}},"required":["c"]})",
       {R"({"c":[{"c":[]}]})"},
       {R"({"c":[1]})", R"({"c":[{}]})"}},
  });
  const char* several =
      R"({"$dynamicAnchor":"n","$defs":{"a":{"$id":"a","$dynamicAnchor":"n","const":1}},"items":{"$dynamicRef":"#n"}})";
  EXPECT_THROW(compile_json_schema(std::string_view(several)), Error);
}

}  // namespace
}  // namespace qwench
