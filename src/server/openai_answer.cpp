#include "server/openai_answer.h"

#include <algorithm>
#include <utility>

#include "server/logprobs_json.h"
#include "server/request_id.h"
#include "server/version.h"

namespace qwench::server {
namespace {

constexpr ToolTextPart::Kind kContent = ToolTextPart::Kind::content;

/// A call before its arguments.
Json begun_call(const std::string& name) {
  return {{"id", new_call_id()}, {"type", "function"}, {"function", {{"name", name}, {"arguments", ""}}}};
}

std::string openai_event(const Json& data) { return "data: " + to_line(data) + "\n\n"; }

Json timings_json(const AnswerTotals& totals) {
  const auto rate = [](int tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0.0; };
  const int computed = totals.usage.prompt_tokens - totals.usage.cached_tokens;
  return {{"cache_n", totals.usage.cached_tokens},
          {"prompt_n", computed},
          {"prompt_ms", totals.timings.prefill_seconds * 1e3},
          {"prompt_per_second", rate(computed, totals.timings.prefill_seconds)},
          {"predicted_n", totals.usage.completion_tokens},
          {"predicted_ms", totals.timings.decode_seconds * 1e3},
          {"predicted_per_second", rate(totals.usage.completion_tokens, totals.timings.decode_seconds)},
          {"queue_ms", totals.timings.queue_seconds * 1e3}};
}

}  // namespace

OpenAiAnswer::OpenAiAnswer(AnswerHead head, const std::vector<PromptChoices>& prompts)
    : head_(std::move(head)) {
  for (const PromptChoices& prompt : prompts) {
    for (int i = 0; i < prompt.count; ++i) {
      choices_.push_back({ChoiceText(prompt.reasoning, head_.tools)});
      choices_.back().echo = prompt.echo;
    }
  }
  unfinished_ = static_cast<int>(choices_.size());
}

void OpenAiAnswer::take_result(const PromptChoices& prompt, int index, const Result& result) {
  if (index != 0 || prompt.echo_ids.empty() || !head_.include_logprobs) return;
  for (int i = 0; i < prompt.count; ++i) {
    Choice& choice = choices_[static_cast<size_t>(prompt.first_choice) + static_cast<size_t>(i)];
    const std::optional<TokenId> first =
        prompt.echo_ids.empty() ? std::nullopt : std::optional(prompt.echo_ids.front());
    choice.echo_logprobs =
        completion_logprobs(result.prompt_logprobs, first, *head_.tokenizer, choice.text_offset);
  }
}

std::string OpenAiAnswer::take(int index, const StreamDelta& delta) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  ChoicePart part = choice.text.push(delta);
  if (choice.text.in_reasoning()) reasoning_tokens_ += static_cast<int>(delta.ids.size());
  Json logprobs;
  if (head_.include_logprobs && head_.tokenizer) {
    std::vector<TokenLogprob> shown = delta.logprobs;
    // The token that ends a text is no part of it.
    const bool stopped = delta.finish_reason == FinishReason::stop && !shown.empty();
    if (stopped && std::binary_search(head_.stop_ids.begin(), head_.stop_ids.end(), shown.back().id))
      shown.pop_back();
    if (!choice.echo_logprobs.is_null()) append_logprobs(logprobs, std::exchange(choice.echo_logprobs, {}));
    if (!shown.empty()) {
      append_logprobs(logprobs, head_.chat ? chat_logprobs(shown, *head_.tokenizer)
                                           : completion_logprobs(shown, std::nullopt, *head_.tokenizer,
                                                                 choice.text_offset));
    }
  }
  if (!choice.echo.empty())
    part.answer.insert(part.answer.begin(), {kContent, -1, std::exchange(choice.echo, {})});
  if (delta.finish_reason) {
    const bool called = *delta.finish_reason == FinishReason::stop && choice.text.called();
    choice.finish_reason = called ? "tool_calls" : name(*delta.finish_reason);
    --unfinished_;
  }
  if (!head_.stream) {
    join(choice, part, logprobs);
    return {};
  }
  std::string events;
  if (!part.answer.empty() || !part.reasoning.empty() || !logprobs.is_null())
    events = choice_events(index, part, std::move(logprobs));
  if (delta.finish_reason) {
    Json chunk = finish_chunk(index, choice);
    if (unfinished_ > 0) {
      events += openai_event(chunk);
    } else {
      last_finish_ = std::move(chunk);
    }
  }
  return events;
}

Json OpenAiAnswer::chunk(Json choices) const {
  Json chunk{{"id", head_.id},
             {"object", head_.chat ? "chat.completion.chunk" : "text_completion"},
             {"created", head_.created},
             {"model", head_.model},
             {"system_fingerprint", kSystemFingerprint},
             {"choices", std::move(choices)}};
  if (head_.chat) chunk["service_tier"] = "default";
  if (head_.include_usage) chunk["usage"] = nullptr;
  return chunk;
}

void OpenAiAnswer::join(Choice& choice, const ChoicePart& part, const Json& logprobs) const {
  choice.reasoning += part.reasoning;
  for (const ToolTextPart& piece : part.answer) {
    switch (piece.kind) {
      case ToolTextPart::Kind::content:
        choice.content += piece.text;
        break;
      case ToolTextPart::Kind::call:
        choice.calls.push_back(begun_call(piece.text));
        break;
      case ToolTextPart::Kind::arguments:
        choice.calls.back()["function"]["arguments"].get_ref<std::string&>() += piece.text;
        break;
    }
  }
  if (!logprobs.is_null()) append_logprobs(choice.logprobs, logprobs);
}

/// One event for each piece: clients expect a call's beginning and its arguments one after the other.
std::string OpenAiAnswer::choice_events(int index, const ChoicePart& part, Json logprobs) const {
  std::string events;
  const auto add = [&](const char* field, Json value) {
    Json choice{{"index", index}};
    if (head_.chat) {
      choice["delta"] = Json{{field, std::move(value)}};
    } else {
      choice["text"] = std::move(value);
    }
    choice["logprobs"] = std::exchange(logprobs, nullptr);
    choice["finish_reason"] = nullptr;
    events += openai_event(chunk(Json::array({std::move(choice)})));
  };
  if (!part.reasoning.empty()) add("reasoning_content", part.reasoning);
  for (const ToolTextPart& piece : part.answer) {
    if (piece.kind == kContent) {
      add("content", piece.text);
      continue;
    }
    Json call{{"index", piece.call}};
    if (piece.kind == ToolTextPart::Kind::call) {
      call.update(begun_call(piece.text));
    } else {
      call["function"] = {{"arguments", piece.text}};
    }
    add("tool_calls", Json::array({std::move(call)}));
  }
  if (!logprobs.is_null()) add("content", "");
  return events;
}

Json OpenAiAnswer::finish_chunk(int index, const Choice& finished) const {
  Json choice{{"index", index}};
  if (head_.chat) {
    choice["delta"] = Json::object();
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finished.finish_reason;
  return chunk(Json::array({std::move(choice)}));
}

std::string OpenAiAnswer::first_events() {
  if (!head_.chat) return {};
  std::string events;
  for (size_t i = 0; i < choices_.size(); ++i) {
    Json choice{{"index", i},
                {"delta", {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}}},
                {"logprobs", nullptr},
                {"finish_reason", nullptr}};
    events += openai_event(chunk(Json::array({std::move(choice)})));
  }
  return events;
}

std::string OpenAiAnswer::last_events(const AnswerTotals& totals) {
  last_finish_["timings"] = timings_json(totals);
  std::string events = openai_event(last_finish_);
  if (head_.include_usage) {
    Json last = chunk(Json::array());
    last["usage"] = usage_json(totals);
    events += openai_event(last);
  }
  return events + "data: [DONE]\n\n";
}

std::string OpenAiAnswer::error_events(const ApiError& error) const {
  return openai_event(error.to_json()) + "data: [DONE]\n\n";
}

Json OpenAiAnswer::usage_json(const AnswerTotals& totals) const {
  const Usage& usage = totals.usage;
  Json json{{"prompt_tokens", usage.prompt_tokens},
            {"completion_tokens", usage.completion_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"audio_tokens", 0}}}};
  if (head_.chat)
    json["completion_tokens_details"] = {{"reasoning_tokens", reasoning_tokens_},
                                         {"audio_tokens", 0},
                                         {"accepted_prediction_tokens", 0},
                                         {"rejected_prediction_tokens", 0}};
  return json;
}

Json OpenAiAnswer::whole(const AnswerTotals& totals) {
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& from = choices_[i];
    Json choice{{"index", i}};
    if (head_.chat) {
      Json& message = choice["message"] = {{"role", "assistant"},
                                           {"content", from.content},
                                           {"refusal", nullptr},
                                           {"annotations", Json::array()}};
      if (!from.reasoning.empty()) message["reasoning_content"] = from.reasoning;
      if (!from.calls.empty()) {
        if (from.content.empty()) message["content"] = nullptr;
        message["tool_calls"] = from.calls;
      }
    } else {
      choice["text"] = from.content;
    }
    choice["logprobs"] = from.logprobs;
    choice["finish_reason"] = from.finish_reason;
    choices.push_back(std::move(choice));
  }
  Json answer{{"id", head_.id},
              {"object", head_.chat ? "chat.completion" : "text_completion"},
              {"created", head_.created},
              {"model", head_.model},
              {"system_fingerprint", kSystemFingerprint},
              {"choices", std::move(choices)},
              {"usage", usage_json(totals)},
              {"timings", timings_json(totals)}};
  if (head_.chat) answer["service_tier"] = "default";
  return answer;
}

std::unique_ptr<AnswerFormat> make_openai_answer(AnswerHead head, const std::vector<PromptChoices>& prompts) {
  return std::make_unique<OpenAiAnswer>(std::move(head), prompts);
}

}  // namespace qwench::server
