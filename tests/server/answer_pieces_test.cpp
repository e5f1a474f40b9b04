#include "server/answer_pieces.h"

#include <gtest/gtest.h>

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

TEST(AnswerPieces, ACallThatWasCutIsNoneThatIsComplete) {
  AnswerPieces pieces(head_with_tools(), prompt_of(3));
  EXPECT_EQ(pieces.take(delta("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a", FinishReason::length)),
            (std::vector<AnswerPiece>{{Kind::call, "f"}, {Kind::arguments, "{\"a"}}));
  EXPECT_FALSE(pieces.called());
  EXPECT_EQ(pieces.finish_reason(), FinishReason::length);
}

}  // namespace
}  // namespace qwench::server::test
