#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/reasoning.h"

namespace qwench::cli {

/// How an answer's text appears.
struct AnswerStyle {
  bool terminal = false;        ///< reasoning is dimmed, control characters are made harmless
  bool colours = false;         ///< escape sequences may be used
  bool hide_reasoning = false;  ///< the <think> block and the whitespace around it leave no trace
};

/// Turns the deltas of one answer into what is written to the screen or the pipe.
class AnswerPrinter {
 public:
  AnswerPrinter(AnswerStyle style, ReasoningStart reasoning) : style_(style), splitter_(reasoning) {}

  /// `ids`: see ReasoningSplitter.
  std::string push(std::string_view delta, std::span<const TokenId> ids = {});
  std::string finish();
  bool ends_line() const { return last_ == '\n'; }  ///< what was shown is nothing or ends with a newline

 private:
  std::string show(const std::vector<AnswerPart>& parts);

  AnswerStyle style_;
  ReasoningSplitter splitter_;
  bool dimmed_ = false;
  bool skip_whitespace_ = false;
  char last_ = '\n';
};

}  // namespace qwench::cli
