#include "server/choice_text.h"

namespace qwench::server {

ChoicePart ChoiceText::push(std::string_view text) {
  ChoicePart part;
  if (!reasons_) {
    part.content = text;
  } else {
    add(splitter_.push(text), part);
  }
  return part;
}

ChoicePart ChoiceText::finish() {
  ChoicePart part;
  if (reasons_) add(splitter_.finish(), part);
  return part;
}

void ChoiceText::add(const std::vector<AnswerPart>& parts, ChoicePart& into) {
  for (const AnswerPart& part : parts) {
    if (part.kind == TextKind::tag) {
      in_reasoning_ = part.text == "<think>";
      reasoned_ = at_start_ = true;
      held_newlines_.clear();
      if (in_reasoning_) into.reasoning.clear();  // whitespace before the block
      continue;
    }
    std::string_view text = part.text;
    const bool reasoning = part.kind == TextKind::reasoning;
    if (at_start_ && (reasoning || reasoned_)) {
      const size_t begin = text.find_first_not_of('\n');
      if (begin == std::string_view::npos) continue;
      text.remove_prefix(begin);
      at_start_ = false;
    }
    if (!reasoning) {
      into.content += text;
      continue;
    }
    const size_t last = text.find_last_not_of('\n');
    if (last == std::string_view::npos) {
      held_newlines_ += text;
      continue;
    }
    into.reasoning += held_newlines_;
    into.reasoning += text.substr(0, last + 1);
    held_newlines_ = text.substr(last + 1);
  }
}

}  // namespace qwench::server
