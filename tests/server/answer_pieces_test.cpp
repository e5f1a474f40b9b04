#include "server/answer_pieces.h"

#include <gtest/gtest.h>

#include "core/large_integers.h"
#include "server/other_apis.h"

namespace qwench::server::test {
namespace {

using Kind = AnswerPiece::Kind;

AnswerHead head_with_tools() {
  AnswerHead with = head(true);
  with.tools = ToolCallOptions{ToolSyntax::hermes, {{"f", nullptr}}, true};
  return with;
}

TEST(AnswerPieces, ReasoningTextAndCallsComeInTheOrderOfTheText) {
  AnswerPieces pieces(head_with_tools(), prompt_of(3));
  const std::string text =
      "<think>hm</think>Well.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\nSo.";
  EXPECT_EQ(pieces.take(delta(text, FinishReason::stop)),
            (std::vector<AnswerPiece>{{Kind::reasoning, "hm"},
                                      {Kind::text, "Well."},
                                      {Kind::call, "f"},
                                      {Kind::arguments, "{\"a\": 1}"},
                                      {Kind::text, "\nSo."}}));
  EXPECT_TRUE(pieces.called());
}

TEST(AnswerPieces, ArgumentsAreAnObjectOrKeptAsText) {
  EXPECT_EQ(json_line(arguments_object(R"({"a": 123456789012345678901234567890})")),
            R"({"a":123456789012345678901234567890})");
  EXPECT_EQ(json_line(arguments_object("")), "{}");
  EXPECT_EQ(json_line(arguments_object(R"({"a": 1)")), R"({"raw_arguments":"{\"a\": 1"})");
  const std::string deep = R"({"a": )" + std::string(100000, '[');
  EXPECT_EQ(arguments_object(deep)["raw_arguments"], deep);
}

TEST(AnswerPieces, ACallThatWasCutIsNoneThatIsComplete) {
  AnswerPieces pieces(head_with_tools(), prompt_of(3));
  EXPECT_EQ(pieces.take(delta("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a", FinishReason::length)),
            (std::vector<AnswerPiece>{{Kind::call, "f"}, {Kind::arguments, "{\"a"}}));
  EXPECT_FALSE(pieces.called());
  EXPECT_EQ(pieces.finish_reason(), FinishReason::length);
}

}  // namespace
}  // namespace qwench::server::test
