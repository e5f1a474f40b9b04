#include "server/choice_text.h"

#include <utility>

namespace qwench::server {

std::string ChoicePart::content() const {
  std::string joined;
  for (const ToolTextPart& part : answer) {
    if (part.kind == ToolTextPart::Kind::content) joined += part.text;
  }
  return joined;
}

ChoiceText::ChoiceText(ReasoningStart reasoning, const std::optional<ToolCallOptions>& tools)
    : splitter_(reasoning), in_reasoning_(reasoning.kind == ReasoningStart::Kind::open) {
  if (tools) tools_.emplace(*tools);
}

bool ChoiceText::called() const { return tools_ && tools_->calls() > 0 && !tools_->open(); }

ChoicePart ChoiceText::push(const StreamDelta& delta) {
  ChoicePart part;
  add(splitter_.push(delta.text, delta.ids), part);
  if (!delta.finish_reason) return part;
  add(splitter_.finish(), part);
  const bool cut = *delta.finish_reason != FinishReason::stop || delta.stop_string;
  if (tools_) {
    for (ToolTextPart& last : tools_->finish(cut)) part.answer.push_back(std::move(last));
  }
  return part;
}

void ChoiceText::add_answer(std::string_view text, ChoicePart& into) {
  if (text.empty()) return;
  if (!tools_) {
    into.answer.push_back({ToolTextPart::Kind::content, -1, std::string(text)});
    return;
  }
  for (ToolTextPart& part : tools_->push(text)) into.answer.push_back(std::move(part));
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
      add_answer(text, into);
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
