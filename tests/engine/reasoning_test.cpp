#include "engine/reasoning.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace qwench {
namespace {

using enum TextKind;

std::vector<AnswerPart> merged(const std::vector<AnswerPart>& parts) {
  std::vector<AnswerPart> out;
  for (const AnswerPart& part : parts) {
    if (!out.empty() && out.back().kind == part.kind && part.kind != tag) {
      out.back().text += part.text;
    } else {
      out.push_back(part);
    }
  }
  return out;
}

void expect_parts(bool open, const std::string& text, const std::vector<AnswerPart>& expected) {
  const size_t gaps = text.empty() ? 0 : text.size() - 1;
  ASSERT_LT(gaps, 24U);
  for (uint32_t mask = 0; mask < (1U << gaps); ++mask) {
    ReasoningSplitter splitter({open ? ReasoningStart::Kind::open : ReasoningStart::Kind::text});
    std::vector<AnswerPart> parts;
    const auto take = [&](const std::vector<AnswerPart>& more) {
      parts.insert(parts.end(), more.begin(), more.end());
    };
    size_t begin = 0;
    for (size_t i = 0; i <= gaps && !text.empty(); ++i) {
      if (i < gaps && (mask >> i & 1U) == 0) continue;
      take(splitter.push(std::string_view(text).substr(begin, i + 1 - begin)));
      begin = i + 1;
    }
    take(splitter.finish());
    ASSERT_EQ(merged(parts), expected) << '"' << text << "\" chopped by " << mask;
  }
}

TEST(ReasoningSplitter, SplitsTheBlockAtTheStart) {
  expect_parts(false, "<think>a</think>b",
               {{tag, "<think>"}, {reasoning, "a"}, {tag, "</think>"}, {answer, "b"}});
}

TEST(ReasoningSplitter, WhitespaceMayComeBeforeTheBlock) {
  expect_parts(false, "\n<think></think>\n",
               {{reasoning, "\n"}, {tag, "<think>"}, {tag, "</think>"}, {answer, "\n"}});
}

TEST(ReasoningSplitter, ABlockThatThePromptOpened) {
  expect_parts(true, "a<b</think>\nc", {{reasoning, "a<b"}, {tag, "</think>"}, {answer, "\nc"}});
}

TEST(ReasoningSplitter, ABlockThatNeverCloses) {
  expect_parts(false, "<think>a</thin", {{tag, "<think>"}, {reasoning, "a</thin"}});
}

TEST(ReasoningSplitter, TagsInTheAnswerAreText) {
  expect_parts(false, "a<think>b</think>c", {{answer, "a<think>b</think>c"}});
  expect_parts(true, "</think></think>x", {{tag, "</think>"}, {answer, "</think>x"}});
}

TEST(ReasoningSplitter, WhatOnlyLooksLikeATagIsText) {
  expect_parts(false, " <thin", {{answer, " <thin"}});
  expect_parts(false, "<thinker>", {{answer, "<thinker>"}});
  expect_parts(false, "", {});
}

TEST(ReasoningSplitter, WhereATokenOpensTheBlockTheSameTextOfOthersDoesNot) {
  const std::vector<TokenId> opening{7};
  const std::vector<TokenId> other{3, 7};
  const ReasoningStart start{ReasoningStart::Kind::token, 7};
  ReasoningSplitter reasons(start);
  EXPECT_EQ(reasons.push("<think>", opening), (std::vector<AnswerPart>{{tag, "<think>"}}));
  EXPECT_EQ(reasons.push("a</think>b", other),
            (std::vector<AnswerPart>{{reasoning, "a"}, {tag, "</think>"}, {answer, "b"}}));
  ReasoningSplitter answers(start);
  EXPECT_EQ(answers.push("<th", other), (std::vector<AnswerPart>{{answer, "<th"}}));
  EXPECT_EQ(answers.push("ink>a", opening), (std::vector<AnswerPart>{{answer, "ink>a"}}));
}

TEST(ReasoningSplitter, WhereThereIsNoneEverythingIsTheAnswer) {
  ReasoningSplitter splitter({ReasoningStart::Kind::none});
  EXPECT_EQ(splitter.push("<think>a</think>b"), (std::vector<AnswerPart>{{answer, "<think>a</think>b"}}));
}

TEST(OpensReasoning, IsAboutTheEndOfThePrompt) {
  EXPECT_TRUE(opens_reasoning("<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(opens_reasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning(""));
}

}  // namespace
}  // namespace qwench
