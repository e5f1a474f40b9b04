#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "qwench/constraint.h"

namespace qwench {

/// What a part of a model's answer is.
enum class TextKind {
  answer,
  reasoning,  ///< between <think> and </think>
  tag,        ///< "<think>" or "</think>" itself
};

struct AnswerPart {
  TextKind kind;
  std::string text;

  friend bool operator==(const AnswerPart&, const AnswerPart&) = default;
};

/// Tells reasoning from answer in a streamed text. Reasoning is one block at the text's start: "<think>"
/// after nothing but whitespace, or already open where the prompt ends with it, up to the first "</think>" or
/// the end of the text. Tags that come later are the answer's own text. The parts, joined, are the text; how
/// it was chopped into deltas changes only where parts of one kind are split.
class ReasoningSplitter {
 public:
  /// `open`: the prompt has already opened the block (see opens_reasoning).
  explicit ReasoningSplitter(bool open = false) : state_(open ? State::inside : State::before) {}

  std::vector<AnswerPart> push(std::string_view delta);
  std::vector<AnswerPart> finish();

 private:
  enum class State { before, inside, after };

  State state_;
  std::string held_;
};

/// Does this prompt end with "<think>", whitespace aside? Templates of models that always reason write it
/// themselves.
bool opens_reasoning(std::string_view prompt);

/// Where a constraint on the answer to a chat's prompt begins. The model may open a block itself where the
/// template knows the switch "enable_thinking", `kwargs` do not turn it off, and the prompt has not closed
/// one already, as templates do that are told not to think.
Constraint::Reasoning reasoning_before_constraint(std::string_view prompt, std::string_view template_source,
                                                  const Json& kwargs);

}  // namespace qwench
