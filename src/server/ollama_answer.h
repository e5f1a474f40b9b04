#pragma once

#include <string>

#include "server/answer_format.h"
#include "server/answer_pieces.h"

namespace qwench::server {

/// The answers of Ollama's /api/chat and /api/generate; streams are lines of JSON, of which the last says
/// "done": true.
class OllamaAnswer final : public AnswerFormat {
 public:
  /// `chat`: text is a message; else it is "response".
  OllamaAnswer(AnswerHead head, const PromptChoices& prompt, bool chat);

  std::string take(int choice, const StreamDelta& delta) override;
  std::string last_events(const AnswerTotals& totals) override;
  std::string error_events(const ApiError& error) const override;
  std::string keep_alive() const override { return {}; }  // a line that is no JSON would break its readers
  const char* stream_media() const override { return "application/x-ndjson"; }
  Json whole(const AnswerTotals& totals) override;
  ErrorShape error_shape() const override { return ErrorShape::ollama; }

 private:
  struct Parts {
    std::string content = {};
    std::string thinking = {};
    Json calls = Json::array();
  };
  Json line(const Parts& parts, bool done) const;
  Json last_line(const Parts& parts, const AnswerTotals& totals) const;
  void close_call(Parts& parts);

  AnswerHead head_;
  bool chat_;
  AnswerPieces pieces_;
  Parts all_;  // of an answer that is no stream
  Json call_;  // whose arguments still come; null: none
  std::string arguments_;
};

/// The answer to a request that only wants the model to be loaded.
Json ollama_load_line(const AnswerHead& head, bool chat);

}  // namespace qwench::server
