#include "verify/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "qwench/error.h"

namespace qwench {
namespace {

TokenId run_pass(Subject& subject, std::span<const TokenId> ids, int start, int prompt_length) {
  const SequenceInput input{
      ids.subspan(static_cast<size_t>(start)), start, prompt_length, subject.blocks(), false, true};
  subject.forward(std::span(&input, 1));
  std::array<TokenId, 1> best{};
  subject.backend().argmax(subject.decoder().logits(0, 1), subject.config().vocab_size, best);
  if (best[0] < 0) {
    throw Error(
        ErrorKind::numeric,
        "the model gave logits that are not finite; its weights or this engine's arithmetic are broken");
  }
  return best[0];
}

}  // namespace

double TraceStep::seconds() const {
  double sum = 0;
  for (const TraceEvent& event : events) sum += event.seconds;
  return sum;
}

std::vector<TraceTotal> totals(const TraceStep& step) {
  std::vector<TraceTotal> totals;
  for (const TraceEvent& event : step.events) {
    auto found = std::find_if(totals.begin(), totals.end(),
                              [&](const TraceTotal& total) { return total.name == event.name; });
    if (found == totals.end()) found = totals.insert(totals.end(), TraceTotal{event.name, 0, 0, 0});
    ++found->count;
    found->seconds += event.seconds;
    found->bytes += event.bytes;
  }
  std::stable_sort(totals.begin(), totals.end(),
                   [](const TraceTotal& a, const TraceTotal& b) { return a.seconds > b.seconds; });
  return totals;
}

std::vector<TraceStep> trace_steps(Subject& subject, TracingBackend& backend, std::span<const TokenId> prompt,
                                   int decode_steps, bool norms) {
  subject.check(prompt);
  std::vector<TokenId> ids(prompt.begin(), prompt.end());
  const auto length = static_cast<int>(ids.size());
  run_pass(subject, ids, 0, length);
  std::vector<TraceStep> steps;
  for (int step = 0; step <= decode_steps; ++step) {
    const int start = step == 0 ? 0 : static_cast<int>(ids.size()) - 1;
    backend.start(norms);
    const TokenId next = run_pass(subject, ids, start, length);
    backend.stop();
    steps.push_back({step == 0 ? fmt::format("prefill of {} token{}", length, length == 1 ? "" : "s")
                               : fmt::format("decode at position {}", start),
                     backend.events()});
    ids.push_back(next);
  }
  return steps;
}

Json chrome_trace(std::span<const TraceStep> steps, const std::string& model) {
  constexpr double kMicroseconds = 1e6;
  Json events = Json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "qwench " + model}}}});
  const std::array<std::string, 3> tracks{"steps", "layers", "operations"};
  for (size_t i = 0; i < tracks.size(); ++i) {
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i + 1}, {"args", {{"name", tracks[i]}}}});
  }
  const auto span = [&](const std::string& name, int track, double begin, double end, Json arguments) {
    events.push_back({{"name", name},
                      {"cat", tracks[static_cast<size_t>(track - 1)]},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", track},
                      {"ts", begin * kMicroseconds},
                      {"dur", (end - begin) * kMicroseconds},
                      {"args", std::move(arguments)}});
  };
  double origin = 0;
  for (const TraceStep& step : steps) {
    if (step.events.empty()) continue;
    const TraceEvent& last = step.events.back();
    span(step.name, 1, origin + step.events.front().start, origin + last.start + last.seconds,
         {{"operations", step.events.size()}});
    for (size_t i = 0; i < step.events.size();) {
      size_t end = i;
      while (end < step.events.size() && step.events[end].layer == step.events[i].layer) ++end;
      const TraceEvent& final = step.events[end - 1];
      if (final.layer >= 0)
        span(fmt::format("layer {}", final.layer), 2, origin + step.events[i].start,
             origin + final.start + final.seconds, Json::object());
      i = end;
    }
    for (const TraceEvent& event : step.events) {
      Json arguments{{"operation", event.operation},
                     {"shape", event.shape},
                     {"bytes", event.bytes},
                     {"GB/s", event.bandwidth() / 1e9}};
      if (event.layer >= 0) arguments["layer"] = event.layer;
      if (event.norm > 0) arguments["rms"] = event.norm;
      span(event.name, 3, origin + event.start, origin + event.start + event.seconds, std::move(arguments));
    }
    origin += last.start + last.seconds;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}  // namespace qwench
