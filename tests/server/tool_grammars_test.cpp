#include "server/tool_grammars.h"

#include <gtest/gtest.h>

#include "qwench/error.h"
#include "server/api_error.h"

namespace qwench::server {
namespace {

ToolUse use(ToolUse::Choice choice, std::set<std::string> strict = {}) {
  ToolUse use;
  use.choice = choice;
  use.strict = std::move(strict);
  use.declared = {{"f", Json::parse(R"({"type": "object", "properties": {"a": {"type": "integer"}},
                                        "required": ["a"], "additionalProperties": false})")}};
  return use;
}

std::string call(const std::string& arguments) {
  return "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>";
}

TEST(ToolGrammars, DemandedCallsKeepToTheSchema) {
  ToolGrammars grammars;
  const auto grammar = grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::required));
  ASSERT_NE(grammar, nullptr);
  EXPECT_TRUE(accepts(*grammar, call(R"({"a": 1})")));
  EXPECT_FALSE(accepts(*grammar, call(R"({"a": "1"})")));
  EXPECT_FALSE(accepts(*grammar, "text"));
  EXPECT_EQ(grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::required)), grammar);
}

TEST(ToolGrammars, OtherCallsKeepToItWhereTheirToolIsStrict) {
  ToolGrammars grammars;
  EXPECT_EQ(grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::automatic)), nullptr);
  const auto grammar = grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::automatic, {"f"}));
  ASSERT_NE(grammar, nullptr);
  EXPECT_TRUE(accepts(*grammar, call(R"({"a": 1})")));
  EXPECT_FALSE(accepts(*grammar, call(R"({"a": "1"})")));
  EXPECT_TRUE(accepts(*grammar, "text"));
}

TEST(ToolGrammars, WhereOnlySomeAreAllowedOnlyTheyAreCalled) {
  ToolGrammars grammars;
  ToolUse some = use(ToolUse::Choice::automatic);
  some.restricted = true;
  const auto grammar = grammars.get(ToolSyntax::hermes, some);
  ASSERT_NE(grammar, nullptr);
  EXPECT_TRUE(accepts(*grammar, "text"));
  EXPECT_TRUE(accepts(*grammar, call(R"({"a": "any"})"))) << "it is not strict";
  EXPECT_FALSE(accepts(*grammar, "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"));
}

TEST(ToolGrammars, AnAnswerIsCallsOrTextOfTheFormThatIsAskedFor) {
  ToolGrammars grammars;
  const Constraint schema{.kind = Constraint::Kind::json_schema, .text = R"({"type": "integer"})"};
  const auto either = grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::automatic), schema);
  ASSERT_NE(either, nullptr);
  EXPECT_TRUE(accepts(*either, "12"));
  EXPECT_TRUE(accepts(*either, call(R"({"any": "object"})")));
  EXPECT_FALSE(accepts(*either, "text"));
  EXPECT_FALSE(accepts(*either, "12" + call("{}")));
  EXPECT_EQ(grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::automatic), schema), either);
  const Constraint other{.kind = Constraint::Kind::json_object};
  EXPECT_TRUE(accepts(*grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::automatic), other), "{}"));

  const auto strict = grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::automatic, {"f"}), schema);
  EXPECT_TRUE(accepts(*strict, "12"));
  EXPECT_FALSE(accepts(*strict, call(R"({"any": "object"})")));

  const auto demanded = grammars.get(ToolSyntax::hermes, use(ToolUse::Choice::required), schema);
  EXPECT_FALSE(accepts(*demanded, "12")) << "a demanded call leaves no text";
}

TEST(ToolGrammars, AFormThatCannotBeKeptToIsRefusedAsWithoutTools) {
  ToolGrammars grammars;
  const Constraint bad{.kind = Constraint::Kind::json_schema, .text = R"({"type": "nothing"})"};
  for (const auto choice : {ToolUse::Choice::automatic, ToolUse::Choice::required}) {
    try {
      grammars.get(ToolSyntax::hermes, use(choice), bad);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("the JSON schema: #: type"), std::string::npos)
          << error.what();
    }
  }
}

TEST(ToolGrammars, ASchemaThatCannotBeKeptToIsRefused) {
  ToolGrammars grammars;
  ToolUse bad = use(ToolUse::Choice::required);
  bad.declared[0].parameters = Json::parse(R"({"type": "array"})");
  try {
    grammars.get(ToolSyntax::hermes, bad);
    ADD_FAILURE() << "accepted";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.param(), "tools");
  }
}

}  // namespace
}  // namespace qwench::server
