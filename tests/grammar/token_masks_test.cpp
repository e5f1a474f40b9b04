#include "grammar/token_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/grammar_cache.h"
#include "grammar/json_schema.h"
#include "grammar/tool_grammar.h"

namespace qwench {
namespace {

std::optional<TokenId> no_token(const std::string&) { return std::nullopt; }

/// All bytes, and `more` tokens of pieces of JSON.
std::vector<std::string> vocabulary(size_t more, uint32_t seed) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string> pieces = {
      "\"", "{",    "}", "[",    "]",    ":",     ",",     " ",      "\n", "  ",   "a",
      "b",  "name", "é", "中",   "😃",    "\\",    "u00e9", "n",      "1",  "0",    "23",
      ".",  "-",    "e", "true", "null", "false", "\": ",  "\", \"", "},", "\xC3", "\x98"};
  std::mt19937 random(seed);
  for (size_t i = 0; i < more; ++i) {
    std::string token;
    for (size_t k = 1 + random() % 4; k > 0; --k) token += pieces[random() % pieces.size()];
    tokens.push_back(token);
  }
  return tokens;
}

std::shared_ptr<const TokenTrie> trie_of(const std::vector<std::string>& tokens) {
  std::vector<std::pair<std::string, TokenId>> pairs;
  for (size_t i = 0; i < tokens.size(); ++i) pairs.emplace_back(tokens[i], static_cast<TokenId>(i));
  return std::make_shared<const TokenTrie>(std::move(pairs), static_cast<int>(tokens.size()));
}

std::vector<std::shared_ptr<const Grammar>> grammars() {
  return {
      compile_json_object(),
      compile_json_schema(std::string_view(
          R"({"type":"object","properties":{"name":{"type":"string"},"a":{"type":"array","items":{"type":"number"}},"b":{"enum":["é","中"]}},"required":["name"]})")),
      compile_json_schema(std::string_view(R"({"type":"string","minLength":300,"maxLength":700})")),
      compile_json_schema(std::string_view(
          R"({"$defs":{"t":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/t"}},"b":{"type":"integer","minimum":0,"maximum":123}}}},"$ref":"#/$defs/t"})")),
      compile_regex("(a|b|name)*[é中]{0,3}(\\{\\}|\\[\\])+"),
      compile_gbnf("root ::= \"[\" root \"]\" | [a-z]* | \"{\" root \"}\""),
  };
}

TEST(TokenMasks, AreWhatTryingEachTokenGives) {
  const std::vector<std::string> tokens = vocabulary(600, 1);
  const auto trie = trie_of(tokens);
  std::mt19937 random(2);
  int compared = 0;
  for (const auto& grammar : grammars()) {
    for (int text = 0; text < 6; ++text) {
      // A small budget, so that what was found is given up now and then.
      TokenMasks masks(grammar, trie, no_token, text < 3 ? size_t{48} << 20 : size_t{100} << 10);
      TokenMasks::Position position = masks.start();
      for (int step = 0; step < 25; ++step) {
        const auto mask = masks.mask(position);
        std::vector<TokenId> allowed;
        for (size_t id = 0; id < tokens.size(); ++id) {
          TokenMasks::Position next = position;
          const bool taken = masks.accept(next, std::string_view(tokens[id]));
          ASSERT_EQ(mask->has(static_cast<TokenId>(id)), taken) << testing::PrintToString(tokens[id]);
          if (taken) allowed.push_back(static_cast<TokenId>(id));
        }
        ++compared;
        ASSERT_EQ(mask->any, !allowed.empty());
        if (allowed.empty()) break;
        ASSERT_TRUE(masks.accept(position, allowed[random() % allowed.size()]));
      }
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(TokenMasks, AnyWalkEndsInATextOfTheLanguage) {
  const std::vector<std::string> tokens = vocabulary(2000, 3);
  const auto trie = trie_of(tokens);
  std::mt19937 random(4);
  int ended = 0;
  for (const auto& grammar : grammars()) {
    TokenMasks masks(grammar, trie, no_token);
    for (int walk = 0; walk < 20; ++walk) {
      TokenMasks::Position position = masks.start();
      std::string text;
      for (int step = 0; step < 1500; ++step) {
        if (masks.complete(position) && random() % 4 == 0) break;
        const auto mask = masks.mask(position);
        std::vector<TokenId> allowed;
        for (size_t id = 0; id < tokens.size(); ++id) {
          if (mask->has(static_cast<TokenId>(id))) allowed.push_back(static_cast<TokenId>(id));
        }
        if (allowed.empty()) break;
        // Towards the end, what closes: the walk is to come to one.
        const TokenId chosen = allowed[random() % allowed.size()];
        text += tokens[static_cast<size_t>(chosen)];
        ASSERT_TRUE(masks.accept(position, chosen));
      }
      if (!masks.complete(position)) continue;
      ++ended;
      EXPECT_TRUE(accepts(*grammar, text)) << text;
    }
  }
  EXPECT_GT(ended, 50);
}

TEST(TokenMasks, SeveralTokensOfTheSameBytesGoTogether) {
  const auto trie = trie_of({"a", "ab", "a", "b", ""});
  TokenMasks masks(compile_regex("a"), trie, no_token);
  TokenMasks::Position position = masks.start();
  const auto mask = masks.mask(position);
  EXPECT_TRUE(mask->has(0));
  EXPECT_FALSE(mask->has(1));
  EXPECT_TRUE(mask->has(2));
  EXPECT_FALSE(mask->has(4));
}

TEST(TokenMasks, AddedTokensAreTheirIdOrTheirBytes) {
  const auto grammar = compile_tool_calls(ToolSyntax::hermes, {{"f", nullptr}}, false, true);
  std::vector<std::string> tokens = vocabulary(0, 0);
  const auto trie = trie_of(tokens);
  TokenMasks by_bytes(grammar, trie, no_token);
  TokenMasks::Position position = by_bytes.start();
  EXPECT_TRUE(by_bytes.mask(position)->has('<'));
  ASSERT_TRUE(by_bytes.accept(position, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_TRUE(by_bytes.ended(position));

  const auto find = [](const std::string& text) -> std::optional<TokenId> {
    return text == "<tool_call>" ? 300 : 301;
  };
  std::vector<std::pair<std::string, TokenId>> pairs;
  for (int id = 0; id < 256; ++id) pairs.emplace_back(std::string(1, static_cast<char>(id)), id);
  TokenMasks by_id(grammar, std::make_shared<const TokenTrie>(std::move(pairs), 302), find);
  position = by_id.start();
  EXPECT_FALSE(by_id.mask(position)->has('<'));
  EXPECT_TRUE(by_id.mask(position)->has(300));
  EXPECT_FALSE(by_id.mask(position)->has(301));
  ASSERT_TRUE(by_id.accept(position, TokenId{300}));
  ASSERT_TRUE(by_id.accept(position, "\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n"));
  ASSERT_TRUE(by_id.accept(position, TokenId{301}));
  EXPECT_TRUE(by_id.ended(position));
}

TEST(TokenMasks, PositionsAreIndependent) {
  const auto trie = trie_of({"a", "b"});
  TokenMasks masks(compile_regex("aa|bb"), trie, no_token);
  TokenMasks::Position first = masks.start();
  TokenMasks::Position second = first;
  ASSERT_TRUE(masks.accept(first, TokenId{0}));
  ASSERT_TRUE(masks.accept(second, TokenId{1}));
  EXPECT_TRUE(masks.mask(first)->has(0));
  EXPECT_FALSE(masks.mask(first)->has(1));
  EXPECT_TRUE(masks.mask(second)->has(1));
  EXPECT_FALSE(masks.complete(first));
  ASSERT_TRUE(masks.accept(first, TokenId{0}));
  EXPECT_TRUE(masks.ended(first));
  EXPECT_FALSE(masks.accept(first, TokenId{0}));
}

TEST(GrammarCache, TheSameTextIsCompiledOnce) {
  GrammarCache cache(size_t{1} << 20);
  const Constraint one{.kind = Constraint::Kind::regex, .text = "a+"};
  const Constraint other{.kind = Constraint::Kind::grammar, .text = "root ::= \"a\""};
  const auto first = cache.get(one);
  EXPECT_EQ(cache.get(one), first);
  EXPECT_NE(cache.get(other), first);
  for (int i = 0; i < 200; ++i)
    cache.get({.kind = Constraint::Kind::regex, .text = "[ab]{200}" + std::to_string(i)});
  EXPECT_NE(cache.get(one), first) << "what was used longest ago has left";
}

TEST(GrammarCache, Choices) {
  const auto grammar = compile_choice({"yes", "no", "yes and no"});
  EXPECT_TRUE(accepts(*grammar, "yes"));
  EXPECT_TRUE(accepts(*grammar, "yes and no"));
  EXPECT_FALSE(accepts(*grammar, "yes and"));
  EXPECT_ANY_THROW(compile_choice({}));
  EXPECT_ANY_THROW(compile_choice({"a", ""}));
}

}  // namespace
}  // namespace qwench
