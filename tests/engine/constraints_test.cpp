#include "engine/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/json.h"
#include "engine/reasoning.h"
#include "qwench/error.h"
#include "text/bpe_byte_alphabet.h"

namespace qwench {
namespace {

constexpr TokenId kNewlines = 256;
constexpr TokenId kEnd = 257;
constexpr TokenId kThink = 258;
constexpr TokenId kThought = 259;

/// All bytes, "\n\n", and added tokens; with or without those of reasoning.
std::shared_ptr<const Tokenizer> tokenizer(bool reasons) {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  const std::string newline = to_byte_alphabet("\n");
  vocabulary[newline + newline] = kNewlines;
  Json added = Json::array();
  const auto add = [&](TokenId id, const char* text, bool special) {
    added.push_back({{"id", id},
                     {"content", text},
                     {"special", special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  };
  add(kEnd, "<|end|>", true);
  if (reasons) add(kThink, "<think>", false);
  if (reasons) add(kThought, "</think>", false);
  const Json level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const Json json{{"added_tokens", added},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", level},
                  {"post_processor", nullptr},
                  {"decoder", level},
                  {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {newline + " " + newline}}}}};
  return Tokenizer::from_json_text(json.dump(), "tokenizer.json");
}

class Walk {
 public:
  explicit Walk(Constraint constraint, bool reasons = true)
      : constraints_(tokenizer(reasons), 303), state_(constraint, constraints_) {}

  bool allows(TokenId id) {
    const TokenFilter filter = state_.filter(stop_);
    const auto among = [&](std::span<const TokenId> ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    if (among(filter.also)) return true;
    return !among(filter.never) && (filter.mask == nullptr || filter.mask->has(id));
  }
  /// Takes tokens that must be allowed.
  void take(const std::vector<TokenId>& ids) {
    for (const TokenId id : ids) {
      ASSERT_TRUE(allows(id)) << id;
      state_.accept(id);
    }
  }
  void write(const std::string& text) { take(std::vector<TokenId>(text.begin(), text.end())); }
  bool ended() const { return state_.ended(); }

 private:
  std::vector<TokenId> stop_{kEnd};
  Constraints constraints_;
  ConstraintState state_;
};

Constraint regex(const std::string& pattern, Constraint::Reasoning reasoning = Constraint::Reasoning::none) {
  return {.kind = Constraint::Kind::regex, .text = pattern, .reasoning = reasoning};
}

TEST(Constraints, StopIdsAreAllowedWhereTheTextIsComplete) {
  Walk walk(regex("ab*"));
  EXPECT_FALSE(walk.allows(kEnd));
  EXPECT_FALSE(walk.allows(kThink));
  EXPECT_FALSE(walk.allows('b'));
  walk.write("a");
  EXPECT_TRUE(walk.allows(kEnd));
  walk.write("b");
  EXPECT_FALSE(walk.ended());
}

TEST(Constraints, WhatNothingCanFollowHasEnded) {
  Walk walk(regex("ab"));
  walk.write("ab");
  EXPECT_TRUE(walk.ended());
}

TEST(Constraints, ReasoningThatThePromptHasOpenedIsFreeAndDoesNotEndTheAnswer) {
  Walk walk(regex("ab", Constraint::Reasoning::open));
  EXPECT_FALSE(walk.allows(kEnd));
  walk.write("anything {");
  walk.take({kThought});
  EXPECT_FALSE(walk.allows('x'));
  walk.take({kNewlines});
  EXPECT_FALSE(walk.allows(kNewlines));
  walk.write("ab");
  EXPECT_TRUE(walk.ended());
}

TEST(Constraints, ReasoningMayBeOpenedByTheModel) {
  Walk reasons(regex("ab", Constraint::Reasoning::possible));
  reasons.take({kThink, 'x', kThought});
  reasons.write("ab");
  Walk answers(regex("ab", Constraint::Reasoning::possible));
  answers.write("a");
  EXPECT_FALSE(answers.allows(kThink));
}

TEST(Constraints, ReasoningEndsByItsTextWhereThatIsNoToken) {
  Walk walk(regex("ab", Constraint::Reasoning::open), false);
  walk.write("well</th</think>");
  EXPECT_FALSE(walk.allows('x'));
  walk.write("ab");
  EXPECT_TRUE(walk.ended());
}

TEST(Constraints, BadOnesAreRefused) {
  Constraints constraints(tokenizer(false), 303);
  EXPECT_THROW(constraints.check(regex("(")), Error);
  EXPECT_THROW(constraints.check({.kind = Constraint::Kind::compiled}), Error);
  constraints.check(regex("a"));
}

TEST(Constraints, WhereTheyBeginThePromptAndTheTemplateSay) {
  using Reasoning = Constraint::Reasoning;
  const std::string with_switch = "{% if enable_thinking is false %}";
  EXPECT_EQ(reasoning_before_constraint("...<think>\n", "", Json::object()), Reasoning::open);
  EXPECT_EQ(reasoning_before_constraint("...assistant\n", "", Json::object()), Reasoning::none);
  EXPECT_EQ(reasoning_before_constraint("...assistant\n", with_switch, Json::object()), Reasoning::possible);
  EXPECT_EQ(reasoning_before_constraint("...assistant\n", with_switch, {{"enable_thinking", false}}),
            Reasoning::none);
  EXPECT_EQ(reasoning_before_constraint("...<think>\n\n</think>\n\n", with_switch, Json::object()),
            Reasoning::none);
}

}  // namespace
}  // namespace qwench
