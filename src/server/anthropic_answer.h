#pragma once

#include <optional>
#include <string>

#include "server/answer_format.h"
#include "server/answer_pieces.h"

namespace qwench::server {

/// The answers of Anthropic's /v1/messages; streams are its server-sent events, each with its name
/// (https://docs.anthropic.com/en/docs/build-with-claude/streaming).
class AnthropicAnswer final : public AnswerFormat {
 public:
  /// `thinks`: reasoning becomes thinking blocks; else it is left out.
  AnthropicAnswer(AnswerHead head, const PromptChoices& prompt, bool thinks);

  std::string take(int choice, const StreamDelta& delta) override;
  void take_result(const PromptChoices& prompt, int index, const Result& result) override;
  std::string first_events() override;
  std::string last_events(const AnswerTotals& totals) override;
  std::string error_events(const ApiError& error) const override;
  std::string keep_alive() const override;
  Json whole(const AnswerTotals& totals) override;
  ErrorShape error_shape() const override { return ErrorShape::anthropic; }

 private:
  std::string add(const AnswerPiece& piece);
  std::string open_block(Json block);
  std::string close_block();
  Json message(Json content, const Json& stop_reason, const Json& stop_sequence, Json usage) const;
  Json stop_reason() const;
  Json stop_sequence() const;

  AnswerHead head_;
  int prompt_tokens_;
  bool thinks_;
  AnswerPieces pieces_;
  Json content_ = Json::array();  // blocks; the last may be open
  bool open_ = false;
  AnswerPiece::Kind open_kind_ = AnswerPiece::Kind::text;
  std::string arguments_;  // of an open tool_use, as JSON text
  std::optional<std::string> stop_string_;
};

}  // namespace qwench::server
