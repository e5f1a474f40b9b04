#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "engine/reasoning.h"
#include "qwench/request.h"
#include "qwench/stream.h"
#include "server/api_error.h"
#include "text/tokenizer.h"
#include "text/tool_calls.h"

namespace qwench::server {

/// What is the same for all pieces of an answer.
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
  std::optional<ToolCallOptions> tools;        ///< whose calls are looked for
};

/// A prompt's part of the answer: choices first_choice, first_choice + 1, ...
struct PromptChoices {
  int first_choice = 0;
  int count = 1;
  int prompt_tokens = 0;
  ReasoningStart reasoning{ReasoningStart::Kind::none};
  std::string echo;  ///< text that every choice begins with
  std::vector<TokenId> echo_ids;
};

/// The sum over all choices.
struct AnswerTotals {
  Usage usage;
  Timings timings;  ///< of the choice that took longest
};

/// Makes an API's JSON of what the engine gives, as one object or as a stream of pieces; both are made of the
/// same parts, so that a stream's pieces joined are the whole answer. For one thread at a time.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  /// Takes the next piece of a choice; returns what it adds to the stream, "" where the answer is none.
  virtual std::string take(int choice, const StreamDelta& delta) = 0;
  /// Once for each choice, when all have ended: before last_events() and whole(), and, where the prompt's
  /// log-probabilities were asked for, before the first take().
  virtual void take_result(const PromptChoices& /*prompt*/, int /*index*/, const Result& /*result*/) {}

  virtual std::string first_events() { return {}; }
  virtual std::string last_events(const AnswerTotals& totals) = 0;
  virtual std::string error_events(const ApiError& error) const = 0;  ///< the end of a stream that failed
  virtual std::string keep_alive() const { return ": keep-alive\n\n"; }
  virtual const char* stream_media() const { return "text/event-stream; charset=utf-8"; }

  virtual Json whole(const AnswerTotals& totals) = 0;
  virtual ErrorShape error_shape() const { return ErrorShape::openai; }
};

using AnswerMaker =
    std::function<std::unique_ptr<AnswerFormat>(AnswerHead head, const std::vector<PromptChoices>& prompts)>;

}  // namespace qwench::server
