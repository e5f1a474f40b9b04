#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/answer_format.h"
#include "server/choice_text.h"

namespace qwench::server {

/// The answers of OpenAI's /v1/chat/completions and /v1/completions; streams are server-sent events that end
/// with [DONE].
class OpenAiAnswer final : public AnswerFormat {
 public:
  OpenAiAnswer(AnswerHead head, const std::vector<PromptChoices>& prompts);

  void take_result(const PromptChoices& prompt, int index, const Result& result) override;
  std::string take(int choice, const StreamDelta& delta) override;
  std::string first_events() override;
  std::string last_events(const AnswerTotals& totals) override;
  std::string error_events(const ApiError& error) const override;
  Json whole(const AnswerTotals& totals) override;

 private:
  struct Choice {
    ChoiceText text;
    std::string content = {};  // joined, where the answer is no stream
    std::string reasoning = {};
    Json calls = Json::array();
    Json logprobs = {};  // joined
    std::string finish_reason = {};
    std::string echo = {};    // still to be sent
    Json echo_logprobs = {};  // still to be sent
    int text_offset = 0;      // characters, of the next token
  };

  Json chunk(Json choices) const;
  void join(Choice& choice, const ChoicePart& part, const Json& logprobs) const;
  std::string choice_events(int index, const ChoicePart& part, Json logprobs) const;
  Json finish_chunk(int index, const Choice& choice) const;
  Json logprobs_json(Choice& choice, const std::vector<TokenLogprob>& logprobs, bool first_unknown,
                     std::optional<TokenId> first) const;
  Json usage_json(const AnswerTotals& totals) const;

  AnswerHead head_;
  std::vector<Choice> choices_;
  int unfinished_;
  int reasoning_tokens_ = 0;
  Json last_finish_;  // the chunk that waits for the timings
};

std::unique_ptr<AnswerFormat> make_openai_answer(AnswerHead head, const std::vector<PromptChoices>& prompts);

}  // namespace qwench::server
