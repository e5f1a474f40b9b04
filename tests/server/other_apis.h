#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/answer_format.h"
#include "server/api_error.h"

// What the tests of the APIs beside OpenAI's chat share.
namespace qwench::server::test {

inline AnswerHead head(bool stream) {
  AnswerHead head;
  head.id = "id";
  head.created = 86400;
  head.model = "m";
  head.chat = true;
  head.stream = stream;
  return head;
}

/// A head for answers that call a tool "f" in the form of Hermes.
inline AnswerHead calling_head(bool stream) {
  AnswerHead calling = head(stream);
  calling.tools.emplace();
  calling.tools->tools.push_back({"f", Json()});
  return calling;
}

inline const std::string kCall =
    "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";

inline PromptChoices prompt_of(int tokens) {
  PromptChoices prompt;
  prompt.reasoning = {};
  prompt.prompt_tokens = tokens;
  return prompt;
}

inline StreamDelta delta(std::string text, std::optional<FinishReason> finish = std::nullopt) {
  StreamDelta delta;
  delta.text = std::move(text);
  delta.ids = {1};
  delta.finish_reason = finish;
  return delta;
}

inline AnswerTotals totals() {
  AnswerTotals totals;
  totals.usage = {10, 4, 8};
  totals.timings.prefill_seconds = 0.25;
  totals.timings.decode_seconds = 0.5;
  return totals;
}

/// The text in pieces of `step` bytes, the last with its end; what the stream of it holds.
inline std::string stream_of(AnswerFormat& answer, const std::string& text, size_t step,
                             FinishReason finish) {
  std::string stream = answer.first_events();
  for (size_t at = 0; at < text.size(); at += step) stream += answer.take(0, delta(text.substr(at, step)));
  stream += answer.take(0, delta("", finish));
  return stream + answer.last_events(totals());
}

/// The JSON of named events, whose names must be those in the data.
inline std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    const std::string event = stream.substr(at, end - at);
    const size_t line = event.find('\n');
    events.push_back(Json::parse(event.substr(line + 7)));
    EXPECT_EQ(event.substr(0, line), "event: " + events.back()["type"].get<std::string>());
    EXPECT_EQ(event.substr(line, 7), "\ndata: ");
    at = end + 2;
  }
  return events;
}

inline std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  for (const Json& event : events) types.push_back(event["type"]);
  return types;
}

/// The error that a body gives; fails the test where it gives none.
template <typename F>
ApiError error_of(F read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error;
  }
  ADD_FAILURE() << "the body was accepted";
  return ApiError(0, "");
}

}  // namespace qwench::server::test
