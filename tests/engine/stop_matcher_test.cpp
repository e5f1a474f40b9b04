#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace qwench {
namespace {

struct Sample {
  std::string text;
  std::vector<std::string> stops;
};

/// What must come out: the text before the leftmost stop string.
std::string cut(const Sample& sample) {
  size_t end = sample.text.size();
  for (const std::string& stop : sample.stops) end = std::min(end, sample.text.find(stop));
  return sample.text.substr(0, end);
}

TEST(StopMatcher, EveryChoppingOfEveryTextGivesTheSameAndNeverTakesBack) {
  const std::vector<Sample> samples{
      {"abcabdabe", {"abe"}},
      {"aaaaaaab", {"aab"}},
      {"aaaaaaaa", {"aab"}},
      {"one two\n\nthree", {"\n\n"}},
      {"x<|im_en|im_end|", {"<|im_end|>"}},
      {"x<|im_end|>y", {"<|im_end|>", "|>"}},
      {"abcd rest", {"abcd", "c"}},
      {"abce rest", {"abcd", "c"}},
      {"abc", {"abcd", "c"}},
      {"ababab!", {"abab!", "b"}},
      {"\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82x", {"\xE3\x80\x82"}},
      {"stop", {"stop"}},
      {"", {"stop"}},
      {"no stops at all", {}},
  };
  int choppings = 0;
  for (const Sample& sample : samples) {
    const std::string expected = cut(sample);
    const size_t gaps = sample.text.empty() ? 0 : sample.text.size() - 1;
    for (uint32_t mask = 0; mask < (1U << gaps); ++mask) {
      StopMatcher matcher(sample.stops);
      std::string out;
      size_t begin = 0;
      for (size_t i = 0; i <= gaps && !sample.text.empty(); ++i) {
        if (i < gaps && (mask >> i & 1U) == 0) continue;
        out += matcher.push(std::string_view(sample.text).substr(begin, i + 1 - begin));
        begin = i + 1;
        ASSERT_TRUE(expected.starts_with(out)) << "leaked \"" << out << "\" of \"" << sample.text << '"';
      }
      out += matcher.finish();
      ASSERT_EQ(out, expected) << "of \"" << sample.text << "\" chopped by " << mask;
      ASSERT_EQ(matcher.stopped(), expected.size() < sample.text.size());
      ++choppings;
    }
  }
  EXPECT_GT(choppings, 50000);
}

TEST(StopMatcher, HoldsBackNoMoreThanItMust) {
  StopMatcher matcher({"###"});
  EXPECT_EQ(matcher.push("a#"), "a");
  EXPECT_EQ(matcher.push("#b"), "##b");
  EXPECT_EQ(matcher.push("c##"), "c");
  EXPECT_EQ(matcher.push("#d"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(*matcher.matched(), "###");
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, TheEndLetsOutWhatWasHeld) {
  StopMatcher matcher({"###"});
  EXPECT_EQ(matcher.push("a##"), "a");
  EXPECT_EQ(matcher.finish(), "##");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, StopStringsBeforeMinTokensAreText) {
  StopMatcher matcher({"ab"});
  EXPECT_EQ(matcher.push("xab", false), "xab");
  EXPECT_EQ(matcher.push("a", false), "");
  EXPECT_EQ(matcher.push("b", false), "ab");
  EXPECT_EQ(matcher.push("a", false), "");
  EXPECT_EQ(matcher.push("by"), "");
  EXPECT_TRUE(matcher.stopped());
}

}  // namespace
}  // namespace qwench
