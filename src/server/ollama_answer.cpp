#include "server/ollama_answer.h"

#include <utility>

#include "server/ollama_common.h"

namespace qwench::server {
namespace {

Json head_of(const AnswerHead& head) {
  return {{"model", head.model}, {"created_at", utc_time(head.created)}};
}

}  // namespace

OllamaAnswer::OllamaAnswer(AnswerHead head, const PromptChoices& prompt, bool chat)
    : head_(std::move(head)), chat_(chat), pieces_(head_, prompt) {}

void OllamaAnswer::close_call(Parts& parts) {
  if (call_.is_null()) return;
  call_["function"]["arguments"] = arguments_object(std::exchange(arguments_, {}));
  parts.calls.push_back(std::exchange(call_, Json()));
}

std::string OllamaAnswer::take(int, const StreamDelta& delta) {
  Parts streamed;
  Parts& parts = head_.stream ? streamed : all_;
  for (AnswerPiece& piece : pieces_.take(delta)) {
    switch (piece.kind) {
      case AnswerPiece::Kind::reasoning:
        parts.thinking += piece.text;
        break;
      case AnswerPiece::Kind::text:
        parts.content += piece.text;
        break;
      case AnswerPiece::Kind::call:
        close_call(parts);
        call_ = {{"function", {{"name", std::move(piece.text)}, {"arguments", Json::object()}}}};
        break;
      case AnswerPiece::Kind::arguments:
        arguments_ += piece.text;
        break;
    }
  }
  if (delta.finish_reason) close_call(parts);
  if (!head_.stream || (parts.content.empty() && parts.thinking.empty() && parts.calls.empty())) return {};
  return to_line(line(parts, false)) + "\n";
}

Json OllamaAnswer::line(const Parts& parts, bool done) const {
  Json line = head_of(head_);
  if (chat_) {
    Json& message = line["message"] = {{"role", "assistant"}, {"content", parts.content}};
    if (!parts.thinking.empty()) message["thinking"] = parts.thinking;
    if (!parts.calls.empty()) message["tool_calls"] = parts.calls;
  } else {
    line["response"] = parts.content;
    if (!parts.thinking.empty()) line["thinking"] = parts.thinking;
  }
  line["done"] = done;
  return line;
}

Json OllamaAnswer::last_line(const Parts& parts, const AnswerTotals& totals) const {
  Json last = line(parts, true);
  const Timings& timings = totals.timings;
  last["done_reason"] = name(pieces_.finish_reason());
  last["total_duration"] =
      nanoseconds_of(timings.queue_seconds + timings.prefill_seconds + timings.decode_seconds);
  last["load_duration"] = 0;
  last["prompt_eval_count"] = totals.usage.prompt_tokens;
  last["prompt_eval_duration"] = nanoseconds_of(timings.prefill_seconds);
  last["eval_count"] = totals.usage.completion_tokens;
  last["eval_duration"] = nanoseconds_of(timings.decode_seconds);
  return last;
}

std::string OllamaAnswer::last_events(const AnswerTotals& totals) {
  return to_line(last_line({}, totals)) + "\n";
}

std::string OllamaAnswer::error_events(const ApiError& error) const {
  return to_line(error.to_json(ErrorShape::ollama)) + "\n";
}

Json OllamaAnswer::whole(const AnswerTotals& totals) { return last_line(all_, totals); }

Json ollama_load_line(const AnswerHead& head, bool chat) {
  Json line = head_of(head);
  if (chat) {
    line["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    line["response"] = "";
  }
  line["done"] = true;
  line["done_reason"] = "load";
  return line;
}

}  // namespace qwench::server
