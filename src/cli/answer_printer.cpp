#include "cli/answer_printer.h"

#include <algorithm>

#include "cli/terminal.h"

namespace qwench::cli {

std::string AnswerPrinter::push(std::string_view delta, std::span<const TokenId> ids) {
  return show(splitter_.push(delta, ids));
}

std::string AnswerPrinter::finish() {
  std::string out = show(splitter_.finish());
  if (dimmed_) out += kReset;
  dimmed_ = false;
  return out;
}

std::string AnswerPrinter::show(const std::vector<AnswerPart>& parts) {
  std::string out;
  for (const AnswerPart& part : parts) {
    std::string_view text = part.text;
    const bool reasoning = part.kind != TextKind::answer;
    if (style_.hide_reasoning) {
      if (reasoning) {
        skip_whitespace_ = true;
        continue;
      }
      if (skip_whitespace_) {
        text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
        skip_whitespace_ = text.empty();
      }
    }
    if (text.empty()) continue;
    if (style_.colours && reasoning != dimmed_) out += reasoning ? kDim : kReset;
    if (style_.colours) dimmed_ = reasoning;
    out += style_.terminal ? harmless(text) : std::string(text);
    last_ = text.back();
  }
  return out;
}

}  // namespace qwench::cli
