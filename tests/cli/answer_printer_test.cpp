#include "cli/answer_printer.h"

#include <gtest/gtest.h>

namespace qwench::cli {
namespace {

std::string shown(const std::string& text, AnswerStyle style, bool open = false) {
  AnswerPrinter printer(style, {open ? ReasoningStart::Kind::open : ReasoningStart::Kind::text});
  std::string out;
  for (const char c : text) out += printer.push(std::string_view(&c, 1));
  return out + printer.finish();
}

constexpr AnswerStyle kPipe{};
constexpr AnswerStyle kTerminal{.terminal = true, .colours = true};
constexpr AnswerStyle kHidden{.hide_reasoning = true};

TEST(AnswerPrinter, APipeGetsTheTextAsItIs) {
  EXPECT_EQ(shown("<think>\na\n</think>\n\nb\x1b[0m", kPipe), "<think>\na\n</think>\n\nb\x1b[0m");
}

TEST(AnswerPrinter, ATerminalShowsReasoningDimmed) {
  EXPECT_EQ(shown("<think>a</think>b", kTerminal), "\x1b[2m<think>a</think>\x1b[0mb");
  EXPECT_EQ(shown("a", kTerminal, true), "\x1b[2ma\x1b[0m");
  EXPECT_EQ(shown("plain", kTerminal), "plain");
}

TEST(AnswerPrinter, ATerminalGetsNoControlCharacters) {
  EXPECT_EQ(shown("a\x1b]0;x\x07\tb\n", kTerminal), "a\xE2\x90\x9B]0;x\xE2\x90\x87\tb\n");
}

TEST(AnswerPrinter, HiddenReasoningLeavesNoTrace) {
  EXPECT_EQ(shown("<think>\na\n</think>\n\nb\n\nc", kHidden), "b\n\nc");
  EXPECT_EQ(shown("a</think>\n\nb", kHidden, true), "b");
  EXPECT_EQ(shown("  b", kHidden), "  b");
}

TEST(AnswerPrinter, KnowsWhetherALineIsOpen) {
  AnswerPrinter printer(kPipe, {});
  EXPECT_TRUE(printer.ends_line());
  printer.push("a");
  EXPECT_FALSE(printer.ends_line());
  printer.push("\n");
  EXPECT_TRUE(printer.ends_line());
}

}  // namespace
}  // namespace qwench::cli
