#include "server/responses_answer.h"

#include <fmt/format.h>

#include <utility>

#include "server/body_fields.h"

namespace qwench::server {
namespace {

using Kind = AnswerPiece::Kind;

std::string event_text(const Json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", data["type"].get<std::string>(), to_line(data));
}

Json or_else(const Json& body, const char* field, const Json& fallback) {
  const Json* value = given(body, field);
  return value == nullptr ? fallback : *value;
}

Json text_part(const std::string& text) {
  return {
      {"type", "output_text"}, {"annotations", Json::array()}, {"logprobs", Json::array()}, {"text", text}};
}

Json part_of(Kind kind, const std::string& text) {
  return kind == Kind::reasoning ? Json{{"type", "reasoning_text"}, {"text", text}} : text_part(text);
}

Json responses_usage(const AnswerTotals& totals, int reasoning_tokens) {
  const Usage& usage = totals.usage;
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

Json echoed_fields(const Json& body) {
  Json echo = Json::object();
  for (const char* field : {"instructions", "max_output_tokens", "temperature", "top_p", "user",
                            "safety_identifier", "prompt_cache_key", "max_tool_calls"})
    echo[field] = or_else(body, field, nullptr);
  echo["metadata"] = or_else(body, "metadata", Json::object());
  echo["parallel_tool_calls"] = or_else(body, "parallel_tool_calls", true);
  echo["tool_choice"] = or_else(body, "tool_choice", "auto");
  echo["tools"] = or_else(body, "tools", Json::array());
  for (Json& tool : echo["tools"]) {
    for (const auto& [field, value] :
         {std::pair<const char*, Json>("parameters", nullptr), {"strict", false}}) {
      if (!tool.contains(field)) tool[field] = value;
    }
  }
  const Json text = or_else(body, "text", Json::object());
  echo["text"] = {{"format", or_else(text, "format", {{"type", "text"}})},
                  {"verbosity", or_else(text, "verbosity", "medium")}};
  const Json reasoning = or_else(body, "reasoning", Json::object());
  echo["reasoning"] = {{"effort", or_else(reasoning, "effort", nullptr)},
                       {"summary", or_else(reasoning, "summary", nullptr)}};
  echo["truncation"] = "disabled";
  echo["store"] = false;
  echo["background"] = false;
  echo["service_tier"] = "default";
  echo["top_logprobs"] = 0;
  echo["previous_response_id"] = nullptr;
  return echo;
}

ResponsesAnswer::ResponsesAnswer(AnswerHead head, const PromptChoices& prompt, Json echo)
    : head_(std::move(head)), echo_(std::move(echo)), pieces_(head_, prompt) {}

std::string ResponsesAnswer::event(Json data) {
  data["sequence_number"] = events_++;
  return event_text(data);
}

std::string ResponsesAnswer::take(int, const StreamDelta& delta) {
  std::string events;
  for (const AnswerPiece& piece : pieces_.take(delta)) events += add(piece);
  if (delta.finish_reason) events += close_item();
  return head_.stream ? events : std::string();
}

/// An event about the open item.
Json ResponsesAnswer::in_item(const char* type) const {
  Json data{{"type", type}, {"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}};
  if (open_kind_ != Kind::call) data["content_index"] = 0;
  return data;
}

std::string ResponsesAnswer::add(const AnswerPiece& piece) {
  const Kind kind = piece.kind == Kind::arguments ? Kind::call : piece.kind;
  std::string events;
  if (!open_ || kind != open_kind_ || piece.kind == Kind::call) {
    events += close_item();
    events += open_item(piece);
  }
  if (piece.kind == Kind::call) return events;
  text_ += piece.text;
  Json data = in_item(kind == Kind::reasoning ? "response.reasoning_text.delta"
                      : kind == Kind::text    ? "response.output_text.delta"
                                              : "response.function_call_arguments.delta");
  data["delta"] = piece.text;
  if (kind == Kind::text) data["logprobs"] = Json::array();
  return events + event(std::move(data));
}

std::string ResponsesAnswer::open_item(const AnswerPiece& piece) {
  open_ = true;
  open_kind_ = piece.kind;
  const auto id = [&](const char* prefix) {
    return fmt::format("{}_{}_{}", prefix, head_.id, output_.size());
  };
  if (piece.kind == Kind::reasoning) {
    output_.push_back({{"id", id("rs")},
                       {"type", "reasoning"},
                       {"status", "in_progress"},
                       {"summary", Json::array()},
                       {"content", Json::array()}});
  } else if (piece.kind == Kind::text) {
    output_.push_back({{"id", id("msg")},
                       {"type", "message"},
                       {"status", "in_progress"},
                       {"role", "assistant"},
                       {"content", Json::array()}});
  } else {
    output_.push_back({{"id", id("fc")},
                       {"type", "function_call"},
                       {"status", "in_progress"},
                       {"call_id", id("call")},
                       {"name", piece.text},
                       {"arguments", ""}});
  }
  std::string events = event({{"type", "response.output_item.added"},
                              {"output_index", output_.size() - 1},
                              {"item", output_.back()}});
  if (piece.kind == Kind::call) return events;
  Json added = in_item("response.content_part.added");
  added["part"] = part_of(piece.kind, "");
  return events + event(std::move(added));
}

std::string ResponsesAnswer::close_item() {
  if (!std::exchange(open_, false)) return {};
  Json& item = output_.back();
  const std::string text = std::exchange(text_, {});
  std::string events;
  if (open_kind_ == Kind::call) {
    item["arguments"] = text;
    Json done = in_item("response.function_call_arguments.done");
    done["name"] = item["name"];
    done["arguments"] = text;
    events += event(std::move(done));
  } else {
    item["content"].push_back(part_of(open_kind_, text));
    Json done =
        in_item(open_kind_ == Kind::reasoning ? "response.reasoning_text.done" : "response.output_text.done");
    done["text"] = text;
    if (open_kind_ == Kind::text) done["logprobs"] = Json::array();
    events += event(std::move(done));
    Json part = in_item("response.content_part.done");
    part["part"] = item["content"].back();
    events += event(std::move(part));
  }
  // Cut by the limit: what was being written has not come to its end.
  item["status"] =
      pieces_.finish_reason() == FinishReason::length && pieces_.ended() ? "incomplete" : "completed";
  return events +
         event({{"type", "response.output_item.done"}, {"output_index", output_.size() - 1}, {"item", item}});
}

Json ResponsesAnswer::response(const char* status, Json usage) const {
  Json response{{"id", head_.id},       {"object", "response"}, {"created_at", head_.created},
                {"status", status},     {"error", nullptr},     {"incomplete_details", nullptr},
                {"model", head_.model}, {"output", output_}};
  if (status == std::string_view("incomplete"))
    response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response.update(echo_);
  response["usage"] = std::move(usage);
  return response;
}

std::string ResponsesAnswer::first_events() {
  const Json begun = response("in_progress", nullptr);
  // Each event takes the next number: one after the other.
  std::string events = event({{"type", "response.created"}, {"response", begun}});
  events += event({{"type", "response.in_progress"}, {"response", begun}});
  return events;
}

Json ResponsesAnswer::whole(const AnswerTotals& totals) {
  const bool cut = pieces_.finish_reason() == FinishReason::length;
  return response(cut ? "incomplete" : "completed", responses_usage(totals, pieces_.reasoning_tokens()));
}

std::string ResponsesAnswer::last_events(const AnswerTotals& totals) {
  Json ended = whole(totals);
  const std::string type = "response." + ended["status"].get<std::string>();
  return event({{"type", type}, {"response", std::move(ended)}});
}

std::string ResponsesAnswer::error_events(const ApiError& error) const {
  Json failed = response("failed", nullptr);
  failed["error"] = {{"code", "server_error"}, {"message", error.what()}};
  return event_text(
      {{"type", "response.failed"}, {"response", std::move(failed)}, {"sequence_number", events_}});
}

}  // namespace qwench::server
