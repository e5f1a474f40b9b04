#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "qwench/constraint.h"
#include "text/tokenizer.h"

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

/// How a text begins with a block of reasoning.
struct ReasoningStart {
  enum class Kind {
    text,   ///< with "<think>", after nothing but whitespace
    open,   ///< the prompt has already opened the block (see opens_reasoning)
    token,  ///< with the token `token`, the first: the same text of other tokens opens none
    none,   ///< it does not: whatever it looks like, it is an answer
  };
  Kind kind = Kind::text;
  TokenId token = -1;
};

/// Tells reasoning from answer in a streamed text. Reasoning is one block at the text's start, up to the
/// first "</think>" or the end of the text. Tags that come later are the answer's own text. The parts,
/// joined, are the text; how it was chopped into deltas changes only where parts of one kind are split.
class ReasoningSplitter {
 public:
  explicit ReasoningSplitter(ReasoningStart start = {});

  /// `ids`: the tokens of the delta; where a token opens the block, no text comes before the first of them.
  std::vector<AnswerPart> push(std::string_view delta, std::span<const TokenId> ids = {});
  std::vector<AnswerPart> finish();

 private:
  enum class State { before, inside, after };

  State state_;
  std::optional<TokenId> awaited_;  // the first token's id tells whether a block begins
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

/// The token that opens a block of reasoning before constrained text, which needs one that closes it too.
std::optional<TokenId> reasoning_token(const Tokenizer& tokenizer);

/// How the text that answers a request begins; `open`: its prompt has opened the block. What a constraint
/// asks for may look like reasoning.
ReasoningStart reasoning_start(bool open, const std::optional<Constraint>& constraint,
                               const Tokenizer* tokenizer);

}  // namespace qwench
