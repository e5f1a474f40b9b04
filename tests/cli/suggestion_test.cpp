#include "cli/suggestion.h"

#include <gtest/gtest.h>

namespace qwench::cli {
namespace {

TEST(Suggestion, ASwapIsOneEdit) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("rnu", "run"), 1);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // no second edit of what was swapped
}

TEST(Suggestion, IsTheNearestWithinTwoEdits) {
  const std::vector<std::string> known = {"temp", "temperature", "top-k", "top-p", "max-tokens", "threads"};
  EXPECT_EQ(suggestion("temprature", known), "temperature");
  EXPECT_EQ(suggestion("tempp", known), "temp");
  EXPECT_EQ(suggestion("max-token", known), "max-tokens");
  EXPECT_EQ(suggestion("max_tokens", known), "max-tokens");
  EXPECT_EQ(suggestion("max-to", known), "max-tokens");  // the beginning of one
  EXPECT_EQ(suggestion("fly", known), std::nullopt);
  EXPECT_EQ(suggestion("", known), std::nullopt);
  EXPECT_EQ(suggestion(std::string(100000, 't'), known), std::nullopt);
}

TEST(Suggestion, AShortWordIsOneEditAway) {
  const std::vector<std::string> known = {"run", "chat", "plan"};
  EXPECT_EQ(suggestion("rnu", known), "run");
  EXPECT_EQ(suggestion("rum", known), "run");
  EXPECT_EQ(suggestion("fly", known), std::nullopt);
}

}  // namespace
}  // namespace qwench::cli
