#include "server/anthropic_answer.h"

#include <fmt/format.h>

#include <utility>

namespace qwench::server {
namespace {

std::string event(const Json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", data["type"].get<std::string>(), to_line(data));
}

Json anthropic_usage(int prompt_tokens, int cached_tokens, int completion_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens},
          {"output_tokens", completion_tokens}};
}

}  // namespace

AnthropicAnswer::AnthropicAnswer(AnswerHead head, const PromptChoices& prompt, bool thinks)
    : head_(std::move(head)), prompt_tokens_(prompt.prompt_tokens), thinks_(thinks), pieces_(head_, prompt) {}

std::string AnthropicAnswer::take(int, const StreamDelta& delta) {
  std::string events;
  for (const AnswerPiece& piece : pieces_.take(delta)) events += add(piece);
  if (delta.finish_reason) events += close_block();
  return head_.stream ? events : std::string();
}

std::string AnthropicAnswer::add(const AnswerPiece& piece) {
  using Kind = AnswerPiece::Kind;
  if (piece.kind == Kind::reasoning && !thinks_) return {};
  std::string events;
  const Kind kind = piece.kind == Kind::arguments ? Kind::call : piece.kind;
  const bool begins = !open_ || kind != open_kind_ || piece.kind == Kind::call;
  if (begins) {
    events += close_block();
    open_kind_ = kind;
    switch (kind) {
      case Kind::reasoning:
        events += open_block({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        break;
      case Kind::text:
        events += open_block({{"type", "text"}, {"text", ""}});
        break;
      default:
        events += open_block({{"type", "tool_use"},
                              {"id", fmt::format("toolu_{}_{}", head_.id, content_.size())},
                              {"name", piece.text},
                              {"input", Json::object()}});
        return events;
    }
  }
  Json& block = content_.back();
  Json delta;
  if (kind == Kind::reasoning) {
    block["thinking"].get_ref<std::string&>() += piece.text;
    delta = {{"type", "thinking_delta"}, {"thinking", piece.text}};
  } else if (kind == Kind::text) {
    block["text"].get_ref<std::string&>() += piece.text;
    delta = {{"type", "text_delta"}, {"text", piece.text}};
  } else {
    arguments_ += piece.text;
    delta = {{"type", "input_json_delta"}, {"partial_json", piece.text}};
  }
  return events + event({{"type", "content_block_delta"}, {"index", content_.size() - 1}, {"delta", delta}});
}

std::string AnthropicAnswer::open_block(Json block) {
  open_ = true;
  content_.push_back(std::move(block));
  return event(
      {{"type", "content_block_start"}, {"index", content_.size() - 1}, {"content_block", content_.back()}});
}

std::string AnthropicAnswer::close_block() {
  if (!std::exchange(open_, false)) return {};
  if (open_kind_ == AnswerPiece::Kind::call)
    content_.back()["input"] = arguments_object(std::exchange(arguments_, {}));
  return event({{"type", "content_block_stop"}, {"index", content_.size() - 1}});
}

void AnthropicAnswer::take_result(const PromptChoices&, int, const Result& result) {
  stop_string_ = result.stop_string;
}

Json AnthropicAnswer::stop_reason() const {
  if (pieces_.finish_reason() == FinishReason::length) return "max_tokens";
  if (pieces_.called()) return "tool_use";
  return stop_string_ ? "stop_sequence" : "end_turn";
}

Json AnthropicAnswer::stop_sequence() const {
  return stop_reason() == "stop_sequence" ? Json(*stop_string_) : Json(nullptr);
}

Json AnthropicAnswer::message(Json content, const Json& stop_reason, const Json& stop_sequence,
                              Json usage) const {
  return {{"id", head_.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", head_.model},
          {"content", std::move(content)},
          {"stop_reason", stop_reason},
          {"stop_sequence", stop_sequence},
          {"usage", std::move(usage)}};
}

std::string AnthropicAnswer::first_events() {
  // What is cached is known only once the prompt runs: message_delta has it.
  return event(
             {{"type", "message_start"},
              {"message", message(Json::array(), nullptr, nullptr, anthropic_usage(prompt_tokens_, 0, 0))}}) +
         keep_alive();
}

std::string AnthropicAnswer::last_events(const AnswerTotals& totals) {
  const Usage& usage = totals.usage;
  return event({{"type", "message_delta"},
                {"delta", {{"stop_reason", stop_reason()}, {"stop_sequence", stop_sequence()}}},
                {"usage",
                 anthropic_usage(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)}}) +
         event(Json{{"type", "message_stop"}});
}

std::string AnthropicAnswer::error_events(const ApiError& error) const {
  return event(error.to_json(ErrorShape::anthropic));
}

std::string AnthropicAnswer::keep_alive() const { return event(Json{{"type", "ping"}}); }

Json AnthropicAnswer::whole(const AnswerTotals& totals) {
  const Usage& usage = totals.usage;
  return message(content_, stop_reason(), stop_sequence(),
                 anthropic_usage(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens));
}

}  // namespace qwench::server
