#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "qwench/engine.h"
#include "server/choice_text.h"
#include "text/tokenizer.h"

namespace qwench::server {

/// What is the same for all chunks of an answer.
struct AnswerHead {
  std::string id;  ///< "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;
  std::string model;
  bool chat = false;
  bool stream = false;
  bool include_usage = false;
  bool include_logprobs = false;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< may be null
  std::vector<TokenId> stop_ids;               ///< those that may end this answer
};

/// A prompt's part of the answer: choices first_choice, first_choice + 1, ...
struct PromptChoices {
  int first_choice = 0;
  int count = 1;
  bool opens_reasoning = false;
  std::string echo;  ///< text that every choice begins with
  std::vector<TokenId> echo_ids;
};

/// The sum over all choices.
struct AnswerTotals {
  Usage usage;
  Timings timings;  ///< of the choice that took longest
};

/// Makes the OpenAI API's JSON of what the engine gives, as one object or as server-sent events; both are
/// made of the same pieces, so that a stream's chunks joined are the whole answer. For one thread at a time.
class Answer {
 public:
  Answer(AnswerHead head, const std::vector<PromptChoices>& prompts);

  /// Log-probabilities of a prompt that is echoed. Before the first take() of its choices.
  void take_prompt_logprobs(const PromptChoices& prompt, const std::vector<TokenLogprob>& logprobs);
  /// Takes the next piece of a choice; returns the events that it gives, "" where the answer is no stream.
  std::string take(int choice, const StreamDelta& delta);

  std::string first_events();                           ///< of a stream
  std::string last_events(const AnswerTotals& totals);  ///< of a stream, [DONE] included
  static std::string error_events(const Json& error);
  Json whole(const AnswerTotals& totals) const;

 private:
  struct Choice {
    ChoiceText text;
    std::string content = {};  // joined, where the answer is no stream
    std::string reasoning = {};
    Json logprobs = {};  // joined
    std::string finish_reason = {};
    std::string echo = {};    // still to be sent
    Json echo_logprobs = {};  // still to be sent
    int text_offset = 0;      // characters, of the next token
  };

  Json chunk(Json choices) const;
  std::string choice_event(int index, const Choice& choice, const ChoicePart& part, Json logprobs) const;
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

}  // namespace qwench::server
