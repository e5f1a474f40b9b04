#include "grammar/tool_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qwench/error.h"

namespace qwench {
namespace {

const Json kWeather = Json::parse(R"({"type":"object","properties":{"city":{"type":"string"},
  "days":{"type":"integer","minimum":1,"maximum":9},"unit":{"type":"string","enum":["C","F"]}},"required":["city"]})");

std::vector<ToolSignature> tools() { return {{"weather", kWeather}, {"now", nullptr}}; }

TEST(ToolGrammar, HermesCallsAreJson) {
  const auto one = compile_tool_calls(ToolSyntax::hermes, tools(), false, true);
  const std::string call =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}\n</tool_call>";
  const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(accepts(*one, call));
  EXPECT_TRUE(accepts(*one, now));
  EXPECT_FALSE(accepts(*one, call + "\n" + now));
  EXPECT_FALSE(accepts(*one, "Hello"));
  EXPECT_FALSE(accepts(*one, "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(accepts(*one, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(accepts(
      *one,
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"B\", \"days\": 10}}\n</tool_call>"));
  EXPECT_TRUE(
      accepts(*compile_tool_calls(ToolSyntax::hermes, tools(), true, true), call + "\n" + now + "\n" + call));
}

TEST(ToolGrammar, Qwen3CoderCallsHoldStringsAsTheyAre) {
  const auto one = compile_tool_calls(ToolSyntax::qwen3_coder, tools(), false, true);
  EXPECT_TRUE(accepts(
      *one,
      "<tool_call>\n<function=weather>\n<parameter=city>\nNew \"York\"\n</par>\n\n</parameter>\n"
      "<parameter=days>\n3\n</parameter>\n<parameter=unit>\nC\n</parameter>\n</function>\n</tool_call>"));
  EXPECT_TRUE(accepts(*one, "<tool_call>\n<function=now>\n</function>\n</tool_call>"));
  EXPECT_FALSE(accepts(*one, "<tool_call>\n<function=weather>\n</function>\n</tool_call>"));
  EXPECT_FALSE(
      accepts(*one,
              "<tool_call>\n<function=weather>\n<parameter=city>\nx\n</parameter>\n<parameter=unit>\nK\n"
              "</parameter>\n</function>\n</tool_call>"));
  EXPECT_FALSE(
      accepts(*one,
              "<tool_call>\n<function=weather>\n<parameter=city>\na</parameter>b\n</parameter>\n</function>\n"
              "</tool_call>"));
}

TEST(ToolGrammar, WhereNoCallIsRequiredAnyTextWithoutOneGoes) {
  const auto maybe = compile_tool_calls(ToolSyntax::hermes, tools(), true, false);
  const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(accepts(*maybe, ""));
  EXPECT_TRUE(accepts(*maybe, "1 <2 and <tool_cal"));
  EXPECT_TRUE(accepts(*maybe, now));
  EXPECT_TRUE(accepts(*maybe, "I look. <" + now + "\n" + now));
  EXPECT_FALSE(accepts(*maybe, "I look. <tool_call>"));
  EXPECT_FALSE(accepts(*maybe, now + " done"));
}

TEST(ToolGrammar, AnswersThatBeginLikeACallOfAToolWithASchemaAreOne) {
  const auto maybe = compile_tool_calls(ToolSyntax::hermes, tools(), true, false);
  const std::string good = R"({"name": "weather", "arguments": {"city": "Rom"}})";
  for (const std::string& text :
       {good, "\n" + good, "```json\n" + good + "\n```", "```\n" + good + "\n```",
        std::string(R"({"name": "Ann", "x": 1})"), std::string(R"({"name": "now", "arguments": 5})"),
        std::string(R"({"name": "weathe)"), std::string(R"({"nam)"), std::string("{\"a\": ") + good + "}",
        "See " + good + "!", std::string("{")}) {
    EXPECT_TRUE(accepts(*maybe, text)) << text;
  }
  for (const char* text :
       {R"({"name": "weather", "arguments": {"city": 5}})", R"({"name": "weather"})",
        R"( {"name":"weather","x":1})", R"({"name": "weather", "parameters": {}})",
        R"({"name": "w\u0065ather", "arguments": {"city": 5}})", "```json\n{\"name\": \"weather\"}\n```"}) {
    EXPECT_FALSE(accepts(*maybe, text)) << text;
  }
}

TEST(ToolGrammar, TextInPlaceOfCallsMayBeOfAForm) {
  const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  const std::vector<std::pair<Constraint, std::string>> forms = {
      {{.kind = Constraint::Kind::json_schema, .text = R"({"const": "x"})"}, "\"x\""},
      {{.kind = Constraint::Kind::json_object}, R"({"a": 1})"},
      {{.kind = Constraint::Kind::regex, .text = "a+"}, "aaa"},
      {{.kind = Constraint::Kind::choice, .choices = {"yes", "no"}}, "no"},
      {{.kind = Constraint::Kind::grammar, .text = "root ::= \"<\" root \">\" | \".\""}, "<<.>>"},
  };
  for (const auto& [form, text] : forms) {
    const auto grammar = compile_tool_calls(ToolSyntax::hermes, tools(), true, false, &form);
    EXPECT_TRUE(accepts(*grammar, text)) << text;
    EXPECT_TRUE(accepts(*grammar, now)) << text;
    EXPECT_TRUE(accepts(*grammar, now + "\n" + now)) << text;
    EXPECT_FALSE(accepts(*grammar, text + now)) << text;
    EXPECT_FALSE(accepts(*grammar, "other")) << text;
  }
}

TEST(ToolGrammar, WithoutASchemaQwen3CoderCallsHaveAnyParameters) {
  const auto one = compile_tool_calls(ToolSyntax::qwen3_coder, tools(), false, true);
  EXPECT_TRUE(accepts(*one,
                      "<tool_call>\n<function=now>\n<parameter=zone>\nUTC\n</parameter>\n<parameter=x>\n1\n"
                      "</parameter>\n</function>\n</tool_call>"));
}

TEST(ToolGrammar, ErrorsNameTheTool) {
  try {
    compile_tool_calls(ToolSyntax::hermes,
                       {{"bad", Json{{"type", "object"}, {"not", {{"uniqueItems", true}}}}}}, false, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::StartsWith("the tool \"bad\": #/not: "),
                                             testing::HasSubstr("by not")));
  }
  EXPECT_THROW(compile_tool_calls(ToolSyntax::hermes, {}, false, true), Error);
  const Json impossible[] = {
      Json::parse(R"({"type": "object", "properties": {"a": false}, "required": ["a"]})"),
      Json::parse(R"({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]})"),
      Json::parse(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})")};
  for (const Json& schema : impossible) {
    for (const ToolSyntax syntax : {ToolSyntax::hermes, ToolSyntax::qwen3_coder}) {
      for (const bool required : {false, true}) {
        try {
          compile_tool_calls(syntax, {{"now", nullptr}, {"bad", schema}}, true, required);
          ADD_FAILURE() << schema;
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), testing::HasSubstr("the tool \"bad\""));
          EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
        }
      }
    }
  }
}

}  // namespace
}  // namespace qwench
