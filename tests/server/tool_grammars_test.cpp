#include "server/tool_grammars.h"

#include <gtest/gtest.h>

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
