#include "engine/reasoning.h"

#include <algorithm>
#include <utility>

namespace qwench {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kWhitespace = " \t\r\n";

/// How many bytes at the end of `text` begin `tag` without finishing it.
size_t unfinished(std::string_view text, std::string_view tag) {
  for (size_t length = std::min(tag.size() - 1, text.size()); length > 0; --length) {
    if (text.substr(text.size() - length) == tag.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

ReasoningSplitter::ReasoningSplitter(ReasoningStart start) : state_(State::before) {
  if (start.kind == ReasoningStart::Kind::open) state_ = State::inside;
  if (start.kind == ReasoningStart::Kind::none) state_ = State::after;
  if (start.kind == ReasoningStart::Kind::token) awaited_ = start.token;
}

std::vector<AnswerPart> ReasoningSplitter::push(std::string_view delta, std::span<const TokenId> ids) {
  if (awaited_ && !ids.empty()) {
    if (ids.front() != *awaited_) state_ = State::after;
    awaited_.reset();
  }
  std::vector<AnswerPart> parts;
  const auto add = [&](TextKind kind, size_t length) {
    if (length > 0) parts.push_back({kind, held_.substr(0, length)});
    held_.erase(0, length);
  };
  held_ += delta;
  if (state_ == State::before) {
    const size_t start = held_.find_first_not_of(kWhitespace);
    if (start == std::string::npos) return parts;
    const std::string_view rest = std::string_view(held_).substr(start);
    if (rest.starts_with(kOpen)) {
      // Whitespace before the block belongs to it: a reader who hides reasoning sees none of it.
      add(TextKind::reasoning, start);
      add(TextKind::tag, kOpen.size());
      state_ = State::inside;
    } else if (!kOpen.starts_with(rest)) {
      state_ = State::after;
    } else {
      return parts;
    }
  }
  if (state_ == State::inside) {
    const size_t close = held_.find(kClose);
    if (close == std::string::npos) {
      add(TextKind::reasoning, held_.size() - unfinished(held_, kClose));
      return parts;
    }
    add(TextKind::reasoning, close);
    add(TextKind::tag, kClose.size());
    state_ = State::after;
  }
  add(TextKind::answer, held_.size());
  return parts;
}

std::vector<AnswerPart> ReasoningSplitter::finish() {
  std::vector<AnswerPart> parts;
  if (!held_.empty()) {
    parts.push_back(
        {state_ == State::inside ? TextKind::reasoning : TextKind::answer, std::exchange(held_, {})});
  }
  return parts;
}

Constraint::Reasoning reasoning_before_constraint(std::string_view prompt, std::string_view template_source,
                                                  const Json& kwargs) {
  if (opens_reasoning(prompt)) return Constraint::Reasoning::open;
  const size_t end = prompt.find_last_not_of(kWhitespace);
  const bool closed = end != std::string_view::npos && prompt.substr(0, end + 1).ends_with(kClose);
  constexpr std::string_view kSwitch = "enable_thinking";
  if (closed || template_source.find(kSwitch) == std::string_view::npos) return Constraint::Reasoning::none;
  const auto found = kwargs.find(std::string(kSwitch));
  const bool off = found != kwargs.end() && found->is_boolean() && !found->get<bool>();
  return off ? Constraint::Reasoning::none : Constraint::Reasoning::possible;
}

std::optional<TokenId> reasoning_token(const Tokenizer& tokenizer) {
  const auto added = [&](std::string_view tag) {
    const auto id = tokenizer.find(tag);
    return id && tokenizer.is_added(*id) ? id : std::nullopt;
  };
  return added(kClose) ? added(kOpen) : std::nullopt;
}

ReasoningStart reasoning_start(bool open, const std::optional<Constraint>& constraint,
                               const Tokenizer* tokenizer) {
  using Kind = ReasoningStart::Kind;
  if (open) return {Kind::open};
  if (!constraint) return {Kind::text};
  if (constraint->reasoning != Constraint::Reasoning::possible || tokenizer == nullptr) return {Kind::none};
  const auto token = reasoning_token(*tokenizer);
  return token ? ReasoningStart{Kind::token, *token} : ReasoningStart{Kind::none};
}

bool opens_reasoning(std::string_view prompt) {
  const size_t end = prompt.find_last_not_of(kWhitespace);
  return end != std::string_view::npos && prompt.substr(0, end + 1).ends_with(kOpen);
}

}  // namespace qwench
