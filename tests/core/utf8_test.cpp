#include "core/utf8.h"

#include <gtest/gtest.h>

namespace qwench {
namespace {

TEST(Utf8, MaximalIllFormedPartsBecomeOneReplacementEach) {
  // Rows of Unicode 15, table 3-8 and section 3.9, and what Python's bytes.decode("utf-8", "replace") gives.
  EXPECT_EQ(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA");
}

TEST(Utf8, EveryCodePointSurvivesTheRoundTrip) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code);
    const Utf8Char c = decode_utf8(text);
    ASSERT_TRUE(c.valid) << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(static_cast<size_t>(c.length), text.size());
  }
}

TEST(Utf8, SurrogatesAndTooLargeCodesBecomeTheReplacement) {
  for (const char32_t code : {0xD800, 0xDFFF, 0x110000}) {
    std::string text;
    append_utf8(text, code);
    EXPECT_EQ(text, "\uFFFD");
  }
}

TEST(Utf8, AnUnfinishedCharacterAtTheEndIsCounted) {
  const std::string text = "a\u00e9\u20ac\U0001F600";
  EXPECT_EQ(incomplete_utf8_suffix(text), 0);
  EXPECT_EQ(incomplete_utf8_suffix(text.substr(0, 2)), 1);  // first byte of é
  EXPECT_EQ(incomplete_utf8_suffix(text.substr(0, 5)), 2);  // two bytes of €
  EXPECT_EQ(incomplete_utf8_suffix(text.substr(0, 9)), 3);  // three bytes of the emoji
  EXPECT_EQ(incomplete_utf8_suffix("a\x80"), 0) << "a stray continuation byte can become nothing";
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0) << "no character begins with E0 80";
  EXPECT_EQ(incomplete_utf8_suffix("\xF5"), 0);
  EXPECT_EQ(incomplete_utf8_suffix(""), 0);
}

}  // namespace
}  // namespace qwench
