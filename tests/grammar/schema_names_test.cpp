#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schema_cases.h"

namespace qwench {
namespace {

TEST(JsonSchemaNames, PatternPropertiesAndPropertyNames) {
  check({
      {R"({"type":"object","patternProperties":{"^s_":{"type":"string"},"^i_":{"type":"integer"}},"additionalProperties":false})",
       {"{}", R"({"s_a":"x"})", R"({"i_b":1,"s_":"y"})"},
       {R"({"s_a":1})", R"({"i_b":"x"})", R"({"x":1})"}},
      {R"({"type":"object","patternProperties":{"a":{"type":"integer"},"b":{"minimum":5}},"additionalProperties":{"type":"null"}})",
       {R"({"a":1})", R"({"ab":5})", R"({"c":null})"},
       {R"({"ab":4})", R"({"a":null})", R"({"c":1})"}},
      {R"({"type":"object","properties":{"s_a":{"maxLength":1}},"patternProperties":{"^s_":{"type":"string"}},"required":["s_a","s_b"]})",
       {R"({"s_a":"x","s_b":"yy"})", R"({"s_a":"x","s_b":"y","s_c":"z"})"},
       {R"({"s_a":"xx","s_b":"y"})", R"({"s_a":"x"})", R"({"s_a":"x","s_b":"y","s_a":1})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"type":"integer"}})",
       {"{}", R"({"ab":1})"},
       {R"({"A":1})", R"({"":1})"}},
      {R"({"type":"object","propertyNames":{"maxLength":2},"properties":{"ab":{"type":"null"},"abc":{"type":"null"}}})",
       {"{}", R"({"ab":null})"},
       {R"({"abc":null})"}},
      {R"({"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"}})",
       {R"({"a":1,"b":2})"},
       {R"({"c":1})"}},
      {R"({"allOf":[{"patternProperties":{"^a":{"type":"integer"}}},{"patternProperties":{"^a":{"minimum":3},"b$":{"maximum":8}}}],"type":"object"})",
       {R"({"ab":3})", R"({"a":9})"},
       {R"({"ab":9})", R"({"a":2})"}},
  });
}

TEST(JsonSchemaNames, ClosedSchemasBesideThePatternsOfOthers) {
  check({
      {R"({"type":"object","allOf":[{"properties":{"a":true,"b1":true},"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false},{"patternProperties":{"1$":{"minimum":5}}}]})",
       {R"({"b1":5})", R"({"x":1})", R"({"x1":5})", R"({"a":1,"x1":7})"},
       {R"({"b1":4})", R"({"x1":4})", R"({"c1":5})", R"({"c":5})"}},
  });
}

TEST(JsonSchemaNames, CountsOfProperties) {
  check({
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"minProperties":2,"additionalProperties":false})",
       {R"({"a":null,"b":null})", R"({"a":null,"c":null})", R"({"b":null,"c":null})",
        R"({"a":null,"b":null,"c":null})"},
       {"{}", R"({"b":null})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"maxProperties":1})",
       {"{}", R"({"a":null})", R"({"c":null})"},
       {R"({"a":null,"c":null})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["b"],"minProperties":2,"maxProperties":3,"additionalProperties":{"type":"integer"}})",
       {R"({"a":null,"b":null})", R"({"b":null,"x":1})", R"({"a":null,"b":null,"x":1})"},
       {R"({"b":null})", R"({"a":null,"b":null,"x":1,"y":1})"}},
  });
}

TEST(JsonSchemaNames, AdditionalOnesOfOneSchemaMeetThePatternsOfAnother) {
  check({
      {R"({"type":"object","allOf":[{"properties":{"a":{"type":"null"},"x.y":{"type":"string","maxLength":1}},"additionalProperties":{"type":"integer"}},
                                   {"patternProperties":{"^x":{"minimum":5}}}]})",
       {R"({"a":null})", R"({"a":null,"x1":5,"b":1})", R"({"x.y":"","b":1})"},
       {R"({"x1":4})", R"({"b":"s"})", R"({"x1":"s"})", R"({"a":1})", R"({"x.y":5})", R"({"xyy":""})"}},
      {R"({"type":"object","allOf":[{"patternProperties":{"e$":{"type":["integer","null"],"maximum":3}}},
                                   {"patternProperties":{"^i|1$":{"type":"integer"}},"additionalProperties":{"type":"null"}}]})",
       {R"({"i":9})", R"({"ie":3})", R"({"e":null})", R"({"b":null})", R"({"e1":4})"},
       {R"({"ie":4})", R"({"ie":null})", R"({"e":1})", R"({"b":1})", R"({"i":null})", R"({"b1":null})"}},
      {R"({"type":"object","allOf":[{"properties":{"a":true},"additionalProperties":{"type":"null"}},
                                   {"properties":{"b":true},"patternProperties":{"^x":true},"additionalProperties":{"enum":[null,1]}}]})",
       {R"({"a":1})", R"({"a":null,"b":null})", R"({"x":null,"c":null})"},
       {R"({"a":2})", R"({"b":1})", R"({"x":1})", R"({"c":1})"}},
  });
}

TEST(JsonSchemaNames, SeveralThatAreNotDeclaredAreSeveral) {
  check({
      {R"({"type":"object","minProperties":2})",
       {R"({"a":1,"b":2})", R"({"name":1,"age":[]})", R"({"a":1,"a":2,"b":3,"b":4})",
        R"({"ab":1,"ba":2,"d":3})", R"({"ä":1,"y":2})"},
       {"{}", R"({"a":1})", R"({"a":1,"a":2})", R"({"a":1,"\u0061":2})", R"({"a":1,"a":2,"a":3})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"minProperties":3,"maxProperties":4,"additionalProperties":{"type":"integer"}})",
       {R"({"a":null,"b":1,"c":2})", R"({"b":1,"c":2,"d":3})", R"({"a":null,"b":1,"c":2,"d":3})"},
       {R"({"a":null,"b":1})", R"({"a":null,"b":1,"b":2})", R"({"b":1,"b":2,"c":2})",
        R"({"b":1,"c":2,"d":3,"e":4,"f":5})", R"({"a":1,"b":1,"c":2})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"minProperties":2})",
       {R"({"a":null,"b":[]})", R"({"b":1,"c":2})"},
       {R"({"a":null})", R"({"b":1,"b":2})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-c]$"},"minProperties":3,"additionalProperties":{"type":"integer"}})",
       {R"({"a":1,"b":2,"c":3})", R"({"c":1,"a":2,"c":3,"b":4})"},
       {R"({"a":1,"b":2,"a":3})", R"({"a":1,"b":2})", R"({"a":1,"b":2,"d":3})"}},
      {R"({"type":"object","patternProperties":{"^x":{"type":"null"},"^y":{"type":"integer"}},"minProperties":2,"additionalProperties":false})",
       {R"({"x1":null,"x2":null})", R"({"x1":null,"y1":1})"},
       {R"({"x1":null})", R"({"x1":null,"x1":null})", R"({"x1":null,"z":1})"}},
  });
  EXPECT_THAT(error_in_schema(R"({"type":"object","minProperties":9})"),
              testing::HasSubstr("names of at most 8 others"));
  EXPECT_THAT(
      error_in_schema(
          R"({"type":"object","properties":{"a":true},"minProperties":2,"additionalProperties":false})"),
      testing::HasSubstr("names of at most 0 others"));
}

TEST(JsonSchemaNames, ListedNamesBesideOtherConditions) {
  for (const char* names :
       {R"({"enum":["xb","ab"],"pattern":"^a"})", R"({"enum":["abc","ab"],"maxLength":2})",
        R"({"const":"ab","minLength":2})", R"({"anyOf":[{"const":"ab"},{"pattern":"^ab$"}]})"}) {
    check({{(R"({"type":"object","additionalProperties":true,"propertyNames":)" + std::string(names) + "}")
                .c_str(),
            {R"({"ab":1})"},
            {R"({"xb":1})", R"({"abc":1})"}}});
  }
}

}  // namespace
}  // namespace qwench
