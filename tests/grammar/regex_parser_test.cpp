#include "grammar/regex_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "grammar/grammar_cache.h"
#include "qwench/error.h"

namespace qwench {
namespace {

std::string error_in_regex(const std::string& pattern) {
  try {
    compile_regex(pattern);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "";
}

/// All texts over an alphabet of at most `longest` characters.
void for_each_text(const std::string& alphabet, size_t longest,
                   const std::function<void(const std::string&)>& f) {
  std::vector<std::string> texts{""};
  for (size_t i = 0; i < texts.size(); ++i) {
    f(texts[i]);
    if (texts[i].size() == longest) continue;
    for (const char c : alphabet) texts.push_back(texts[i] + c);
  }
}

TEST(Regex, MatchesWhatTheStandardLibraryMatches) {
  const std::vector<std::string> patterns = {"a",       "ab|b",         "a*b?",   "(a|b)*a",   "a{2}",
                                             "a{1,3}b", "a{2,}",        "[ab]+",  "[^a]b",     "(a(b|1))+",
                                             "a|",      "(ab?){2,3}",   "\\d\\w", "\\w\\D",    ".a",
                                             "a\\.b",   "(?:a|b){0,2}", "a+?b*?", "[a-b1-2]*", "((a*)*b)*",
                                             "[\\d.]+", "(a|ab)(b|1)?", "^ab$",   "^(a|b.)$",  "^a|b$"};
  int compared = 0;
  for (const std::string& pattern : patterns) {
    const auto grammar = compile_regex(pattern);
    // There it is the anchors' alternatives that match as a whole, too.
    const std::regex reference(pattern, std::regex::ECMAScript);
    for_each_text("ab1.", 4, [&](const std::string& text) {
      EXPECT_EQ(accepts(*grammar, text), std::regex_match(text, reference)) << pattern << " on " << text;
      ++compared;
    });
  }
  EXPECT_EQ(compared, 25 * 341);
}

TEST(Regex, CharactersAreCodePoints) {
  const auto one = compile_regex("[à-ÿ一-龥😀-😅]");
  EXPECT_TRUE(accepts(*one, "é"));
  EXPECT_TRUE(accepts(*one, "中"));
  EXPECT_TRUE(accepts(*one, "😃"));
  EXPECT_FALSE(accepts(*one, "e"));
  EXPECT_FALSE(accepts(*one, "\xC3"));
  EXPECT_FALSE(accepts(*one, "😆"));
  EXPECT_TRUE(accepts(*compile_regex(".{3}"), "a中😃"));
  EXPECT_FALSE(accepts(*compile_regex("."), "\n"));
  EXPECT_TRUE(accepts(*compile_regex("\\u4e2d\\x41\\u{1F603}"), "中A😃"));
  EXPECT_TRUE(accepts(*compile_regex("\\uD83D\\uDE03"), "😃"));
  EXPECT_TRUE(accepts(*compile_regex("\\p{Lu}\\P{Lu}"), "Éé"));
}

TEST(Regex, ClassesHoldWhatAllDialectsAgreeOn) {
  EXPECT_FALSE(accepts(*compile_regex("\\d"), "٣"));
  EXPECT_FALSE(accepts(*compile_regex("\\D"), "٣"));
  EXPECT_FALSE(accepts(*compile_regex("\\w"), "é"));
  EXPECT_FALSE(accepts(*compile_regex("\\W"), "é"));
  EXPECT_FALSE(accepts(*compile_regex("[^\\w]"), "é"));
  EXPECT_TRUE(accepts(*compile_regex("\\W"), "-"));
  EXPECT_TRUE(accepts(*compile_regex("[\\S]"), "é"));
}

TEST(Regex, WhatNoAutomatonHasIsRefused) {
  EXPECT_THAT(error_in_regex("a(?=b)"), testing::HasSubstr("lookaround"));
  EXPECT_THAT(error_in_regex("(?<!b)a"), testing::HasSubstr("lookaround"));
  EXPECT_THAT(error_in_regex("(a)\\1"), testing::HasSubstr("back references"));
  EXPECT_THAT(error_in_regex("a\\b"), testing::HasSubstr("\\b is not supported"));
  EXPECT_THAT(error_in_regex("(?i)a"), testing::HasSubstr("flags"));
  EXPECT_THAT(error_in_regex("a++"), testing::HasSubstr("possessive"));
  EXPECT_THAT(error_in_regex("a^b"), testing::HasSubstr("^ is supported only"));
  EXPECT_THAT(error_in_regex("(a$)b"), testing::HasSubstr("only at the ends"));
  EXPECT_THAT(error_in_regex("[a"), testing::HasSubstr("not closed"));
  EXPECT_THAT(error_in_regex("(a"), testing::HasSubstr("not closed"));
  EXPECT_THAT(error_in_regex("a)"), testing::HasSubstr("without its ("));
  EXPECT_THAT(error_in_regex("*a"), testing::HasSubstr("nothing to repeat"));
  EXPECT_THAT(error_in_regex("[b-a]"), testing::HasSubstr("ends below"));
  EXPECT_THAT(error_in_regex("a{3,2}"), testing::HasSubstr("ends below"));
  EXPECT_THAT(error_in_regex("\\q"), testing::HasSubstr("not known"));
  EXPECT_THAT(error_in_regex("a\\"), testing::HasSubstr("ends with a backslash"));
}

TEST(Regex, CountsThatMakeItTooLargeAreRefused) {
  EXPECT_THAT(error_in_regex("(a{1000}){1000}"), testing::HasSubstr("too large"));
  EXPECT_THAT(error_in_regex("((a{100}){100}){100}{100}"),
              testing::AnyOf(testing::HasSubstr("too large"), testing::HasSubstr("repetition follows")));
  EXPECT_THAT(error_in_regex("a{99999999999}"), testing::HasSubstr("above"));
  EXPECT_THAT(error_in_regex(std::string(500, '(')), testing::HasSubstr("nested too deeply"));
}

TEST(Regex, ManyWaysToGoOnCostNoMoreThanTheirNumber) {
  const auto grammar = compile_regex("(a|a)*(a?){200}b");
  EXPECT_TRUE(accepts(*grammar, std::string(300, 'a') + "b"));
  EXPECT_FALSE(accepts(*grammar, std::string(300, 'a')));
  const auto last = compile_regex("(a|b)*a(a|b){18}");
  EXPECT_TRUE(accepts(*last, "bba" + std::string(18, 'b')));
  EXPECT_FALSE(accepts(*last, "bbb" + std::string(18, 'b')));
}

TEST(Regex, LongRepetitionsCountExactly) {
  const auto grammar = compile_regex("x{300,900}");
  EXPECT_FALSE(accepts(*grammar, std::string(299, 'x')));
  EXPECT_TRUE(accepts(*grammar, std::string(300, 'x')));
  EXPECT_TRUE(accepts(*grammar, std::string(900, 'x')));
  EXPECT_FALSE(accepts(*grammar, std::string(901, 'x')));
}

}  // namespace
}  // namespace qwench
