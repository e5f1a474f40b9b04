#pragma once

#include <string>
#include <vector>

#include "server/answer_format.h"
#include "server/choice_text.h"

namespace qwench::server {

/// What a step of a chat answer adds, in the order of the text.
struct AnswerPiece {
  enum class Kind {
    reasoning,
    text,
    call,       ///< a call of a tool begins: `text` is its name
    arguments,  ///< `text` continues the JSON text of the last call's arguments
  };
  Kind kind = Kind::text;
  std::string text;

  friend bool operator==(const AnswerPiece&, const AnswerPiece&) = default;
};

/// The arguments of a call as an object. Those that the model broke off, or broke, are kept as a text in it.
Json arguments_object(const std::string& arguments);

/// Cuts the one choice of a chat answer into pieces, for APIs whose answers are lists of blocks. Empty pieces
/// are left out.
class AnswerPieces {
 public:
  AnswerPieces(const AnswerHead& head, const PromptChoices& prompt);

  std::vector<AnswerPiece> take(const StreamDelta& delta);
  int reasoning_tokens() const { return reasoning_tokens_; }
  bool called() const { return text_.called(); }  ///< a tool, to the end of the call
  bool ended() const { return ended_; }
  /// Of the last piece; FinishReason::stop before.
  FinishReason finish_reason() const { return finish_reason_; }

 private:
  ChoiceText text_;
  int reasoning_tokens_ = 0;
  bool ended_ = false;
  FinishReason finish_reason_ = FinishReason::stop;
};

}  // namespace qwench::server
