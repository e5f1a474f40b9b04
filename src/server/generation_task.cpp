#include "server/generation_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace qwench::server {
namespace {

constexpr std::chrono::seconds kKeepAlive{10};

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

size_t choices_of(const std::vector<PromptChoices>& prompts) {
  return prompts.empty() ? 0 : static_cast<size_t>(prompts.back().first_choice + prompts.back().count);
}

}  // namespace

GenerationTask::GenerationTask(GenerationJob job, Metrics& metrics, JsonLog& log)
    : job_(std::move(job)),
      metrics_(metrics),
      log_(log),
      answer_(job_.make_answer(job_.head, job_.prompts)),
      holds_(job_.settings.prompt_logprobs.has_value()),
      last_token_(choices_of(job_.prompts), job_.arrival),
      finish_reasons_(choices_of(job_.prompts)),
      last_write_(Clock::now()) {}

void GenerationTask::start() {
  if (!job_.head.stream) return;
  Headers headers = job_.headers;
  headers.emplace_back("Content-Type", answer_->stream_media());
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");  // nginx would hold events back
  job_.exchange->start_stream(200, std::move(headers));
  write(answer_->first_events());
}

void GenerationTask::step() {
  if (ended_) return;
  std::string events;
  bool finished = true;
  for (size_t i = 0; i < job_.streams.size(); ++i) {
    while (const auto delta = job_.streams[i].next(std::chrono::nanoseconds(0))) {
      take(i, *delta, events);
      if (ended_) return;
    }
    finished = finished && job_.streams[i].finished();
  }
  if (finished) return complete(std::move(events));
  write(std::move(events));
}

void GenerationTask::take(size_t prompt, const StreamDelta& delta, std::string& events) {
  const auto choice =
      static_cast<size_t>(job_.prompts[prompt].first_choice) + static_cast<size_t>(delta.index);
  measure(choice, delta);
  if (delta.finish_reason) {
    finish_reasons_[choice] = name(*delta.finish_reason);
    switch (*delta.finish_reason) {
      case FinishReason::stop:
      case FinishReason::length:
        break;
      case FinishReason::deadline:
        return fail(
            ApiError(504, fmt::format("the request took longer than {} s, the most it may; ask for fewer "
                                      "tokens, or start the server with a longer --request-timeout",
                                      job_.timeout_seconds)));
      case FinishReason::error:
        return fail(ApiError(500, job_.streams[prompt].completions() == 1
                                      ? job_.streams[prompt].result(delta.index).error
                                      : "a choice failed; ask for one to see why"));
      default:
        return fail(ApiError(503, "the server is shutting down", "", "shutting_down"));
    }
  }
  if (holds_) {
    held_.emplace_back(choice, delta);
  } else {
    events += answer_->take(static_cast<int>(choice), delta);
  }
}

void GenerationTask::measure(size_t choice, const StreamDelta& delta) {
  if (delta.ids.empty()) return;
  const Clock::time_point now = Clock::now();
  const int tokens = static_cast<int>(delta.ids.size());
  tokens_ += tokens;
  if (!first_token_seen_) metrics_.first_token(seconds_between(job_.arrival, now));
  first_token_seen_ = true;
  if (last_token_[choice] != job_.arrival) {
    metrics_.next_tokens(seconds_between(last_token_[choice], now), tokens);
  }
  last_token_[choice] = now;
}

AnswerTotals GenerationTask::collect_totals() {
  AnswerTotals totals;
  for (size_t i = 0; i < job_.streams.size(); ++i) {
    for (int index = 0; index < job_.prompts[i].count; ++index) {
      const Result result = job_.streams[i].result(index);
      if (index == 0) {
        totals.usage.prompt_tokens += result.usage.prompt_tokens;
        totals.usage.cached_tokens += result.usage.cached_tokens;
      }
      answer_->take_result(job_.prompts[i], index, result);
      totals.usage.completion_tokens += result.usage.completion_tokens;
      Timings& longest = totals.timings;
      longest.queue_seconds = std::max(longest.queue_seconds, result.timings.queue_seconds);
      longest.prefill_seconds = std::max(longest.prefill_seconds, result.timings.prefill_seconds);
      longest.decode_seconds = std::max(longest.decode_seconds, result.timings.decode_seconds);
    }
  }
  return totals;
}

void GenerationTask::complete(std::string events) {
  totals_ = collect_totals();
  for (const auto& [choice, delta] : held_) events += answer_->take(static_cast<int>(choice), delta);
  if (job_.head.stream) {
    write(events + answer_->last_events(*totals_));
    job_.exchange->finish();
  } else {
    HttpResponse response = json_response(200, answer_->whole(*totals_));
    response.headers.insert(response.headers.end(), job_.headers.begin(), job_.headers.end());
    job_.exchange->respond(std::move(response));
  }
  end("error");
}

void GenerationTask::fail(const ApiError& error) {
  if (job_.head.stream) {
    write(answer_->error_events(error));
    job_.exchange->finish();
  } else {
    HttpResponse response = error.to_response(answer_->error_shape());
    response.headers.insert(response.headers.end(), job_.headers.begin(), job_.headers.end());
    job_.exchange->respond(std::move(response));
  }
  if (error.status() == 500)
    log_.error("generation_failed", Json{{"request_id", job_.request_id}, {"error", error.what()}});
  end("abort");
}

void GenerationTask::client_left() {
  if (!ended_) end("abort");
}

void GenerationTask::end(const char* unfinished_reason) {
  ended_ = true;
  job_.streams.clear();  // cancels what is still running
  held_.clear();
  const double seconds = seconds_between(job_.arrival, Clock::now());
  for (std::string& reason : finish_reasons_) {
    if (reason.empty() || reason == "cancelled") reason = unfinished_reason;
  }
  const AnswerTotals totals = totals_.value_or(AnswerTotals{});
  metrics_.request_ended({finish_reasons_, totals.usage, totals.timings, seconds, job_.settings.n,
                          job_.settings.stop.max_tokens});
  int prompt_tokens = 0;
  for (const PromptChoices& prompt : job_.prompts) prompt_tokens += prompt.prompt_tokens;
  Json event = {{"request_id", job_.request_id},
                {"finish_reasons", finish_reasons_},
                {"prompt_tokens", prompt_tokens},
                {"completion_tokens", tokens_},
                {"duration_ms", seconds * 1e3}};
  if (totals_) {  // known of whole answers only
    event["cached_tokens"] = totals.usage.cached_tokens;
    event["queue_ms"] = totals.timings.queue_seconds * 1e3;
    event["prefill_ms"] = totals.timings.prefill_seconds * 1e3;
  }
  log_.info("generation", event);
  job_.exchange.reset();
}

void GenerationTask::keep_alive(Clock::time_point now) {
  if (!ended_ && job_.head.stream && now - last_write_ > kKeepAlive) write(answer_->keep_alive());
}

void GenerationTask::write(std::string events) {
  if (events.empty()) return;
  last_write_ = Clock::now();
  job_.exchange->write(std::move(events));
}

}  // namespace qwench::server
