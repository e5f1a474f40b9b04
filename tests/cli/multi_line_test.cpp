#include "cli/multi_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace qwench::cli {
namespace {

/// The messages that these lines make.
std::vector<std::string> messages(const std::vector<std::string>& lines) {
  MultiLine reader;
  std::vector<std::string> out;
  for (const std::string& line : lines) {
    if (reader.add(line)) out.push_back(reader.take());
  }
  if (reader.open()) out.push_back("(open) " + reader.take());
  return out;
}

using Messages = std::vector<std::string>;

TEST(MultiLine, ALineIsAMessage) { EXPECT_EQ(messages({"one", "two"}), (Messages{"one", "two"})); }

TEST(MultiLine, ABackslashGoesOn) {
  EXPECT_EQ(messages({"one\\", "two\\", "three", "four"}), (Messages{"one\ntwo\nthree", "four"}));
}

TEST(MultiLine, QuotesHoldLines) {
  EXPECT_EQ(messages({"\"\"\"", "one", "", "two\\", "\"\"\"", "x"}), (Messages{"one\n\ntwo\\", "x"}));
  EXPECT_EQ(messages({"\"\"\"one", "two\"\"\""}), (Messages{"one\ntwo"}));
  EXPECT_EQ(messages({"\"\"\"one\"\"\""}), (Messages{"one"}));
}

TEST(MultiLine, WhatIsNotClosedStaysOpen) {
  EXPECT_EQ(messages({"\"\"\"", "one"}), (Messages{"(open) one\n"}));
  EXPECT_EQ(messages({"one\\"}), (Messages{"(open) one\n"}));
}

TEST(MultiLine, ThePartsOfAPasteAreOneMessage) {
  MultiLine reader;
  EXPECT_FALSE(reader.add("one\\", true));
  EXPECT_FALSE(reader.add("", true));
  EXPECT_TRUE(reader.add("two"));
  EXPECT_EQ(reader.take(), "one\\\n\ntwo");
}

TEST(MultiLine, QuotesInsideALineAreText) { EXPECT_EQ(messages({"a \"\"\" b"}), (Messages{"a \"\"\" b"})); }

}  // namespace
}  // namespace qwench::cli
