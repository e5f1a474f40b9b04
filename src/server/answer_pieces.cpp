#include "server/answer_pieces.h"

#include <utility>

#include "core/large_integers.h"
#include "qwench/error.h"

namespace qwench::server {

namespace {

constexpr int kDeepestArguments = 64;

AnswerPiece::Kind kind_of(ToolTextPart::Kind kind) {
  switch (kind) {
    case ToolTextPart::Kind::call:
      return AnswerPiece::Kind::call;
    case ToolTextPart::Kind::arguments:
      return AnswerPiece::Kind::arguments;
    default:
      return AnswerPiece::Kind::text;
  }
}

}  // namespace

Json arguments_object(const std::string& arguments) {
  if (arguments.empty()) return Json::object();
  try {
    Json object = parse_json_exactly(arguments, "the arguments", kDeepestArguments);
    if (object.is_object()) return object;
  } catch (const Error&) {
  }
  return {{"raw_arguments", arguments}};
}

AnswerPieces::AnswerPieces(const AnswerHead& head, const PromptChoices& prompt)
    : text_(prompt.reasoning, head.tools) {}

std::vector<AnswerPiece> AnswerPieces::take(const StreamDelta& delta) {
  ChoicePart part = text_.push(delta);
  if (text_.in_reasoning()) reasoning_tokens_ += static_cast<int>(delta.ids.size());
  std::vector<AnswerPiece> pieces;
  if (!part.reasoning.empty()) pieces.push_back({AnswerPiece::Kind::reasoning, std::move(part.reasoning)});
  for (ToolTextPart& piece : part.answer) {
    if (!piece.text.empty()) pieces.push_back({kind_of(piece.kind), std::move(piece.text)});
  }
  if (delta.finish_reason) {
    ended_ = true;
    finish_reason_ = *delta.finish_reason;
  }
  return pieces;
}

}  // namespace qwench::server
