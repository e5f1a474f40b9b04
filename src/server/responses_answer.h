#pragma once

#include <string>

#include "server/answer_format.h"
#include "server/answer_pieces.h"

namespace qwench::server {

/// What an answer of /v1/responses repeats of its request, with what was left out filled in.
Json echoed_fields(const Json& body);

/// The answers of OpenAI's /v1/responses; streams are its server-sent events, each with its name and number
/// (https://platform.openai.com/docs/api-reference/responses-streaming).
class ResponsesAnswer final : public AnswerFormat {
 public:
  /// `echo`: see echoed_fields().
  ResponsesAnswer(AnswerHead head, const PromptChoices& prompt, Json echo);

  std::string take(int choice, const StreamDelta& delta) override;
  std::string first_events() override;
  std::string last_events(const AnswerTotals& totals) override;
  std::string error_events(const ApiError& error) const override;
  Json whole(const AnswerTotals& totals) override;

 private:
  std::string event(Json data);
  std::string add(const AnswerPiece& piece);
  std::string open_item(const AnswerPiece& piece);
  std::string close_item();
  Json response(const char* status, Json usage) const;
  Json in_item(const char* type) const;

  AnswerHead head_;
  Json echo_;
  AnswerPieces pieces_;
  Json output_ = Json::array();  // items; the last may be open
  bool open_ = false;
  AnswerPiece::Kind open_kind_ = AnswerPiece::Kind::text;
  std::string text_;  // of the open item
  int events_ = 0;
};

}  // namespace qwench::server
