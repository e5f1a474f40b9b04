#include "verify/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "qwench/error.h"

namespace qwench {
namespace {

/// Returns the greedy token, by itself or as the first of the `top_k` largest where there are any.
TokenId run_pass(Subject& subject, std::span<const TokenId> ids, int start, int prompt_length, int top_k) {
  const SequenceInput input{
      ids.subspan(static_cast<size_t>(start)), start, prompt_length, subject.blocks(), false, true};
  subject.forward(std::span(&input, 1));
  std::array<TokenId, kMostTop> best{};
  std::array<float, kMostTop> values{};
  const Matrix& logits = subject.decoder().logits(0, 1);
  if (top_k > 0) {
    subject.backend().top_k(logits, subject.config().vocab_size, top_k, best, values);
  } else {
    subject.backend().argmax(logits, subject.config().vocab_size, std::span(best).first(1));
  }
  if (best[0] < 0) {
    throw Error(
        ErrorKind::numeric,
        "the model gave logits that are not finite; its weights or this engine's arithmetic are broken");
  }
  return best[0];
}

DeviceCounts counts_of(TracingBackend& backend, const std::function<TokenId()>& pass) {
  const DeviceCounts before = backend.counts();
  pass();
  const DeviceCounts after = backend.counts();
  return {after.submits - before.submits, after.read_backs - before.read_backs,
          after.read_back_bytes - before.read_back_bytes, after.streamed_bytes - before.streamed_bytes};
}

void add_norms(TracingBackend& backend, const std::function<TokenId()>& pass, TraceStep& step) {
  backend.start(true);
  pass();
  backend.stop();
  for (size_t i = 0; i < std::min(step.events.size(), backend.events().size()); ++i)
    step.events[i].norm = backend.events()[i].norm;
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
                                   int decode_steps, bool norms, int top_k) {
  subject.check(prompt);
  std::vector<TokenId> ids(prompt.begin(), prompt.end());
  const auto length = static_cast<int>(ids.size());
  run_pass(subject, ids, 0, length, top_k);
  const bool on_device = backend.counts().submits > 0;
  std::vector<TraceStep> steps;
  for (int step = 0; step <= decode_steps; ++step) {
    const int start = step == 0 ? 0 : static_cast<int>(ids.size()) - 1;
    TraceStep traced;
    traced.name = step == 0 ? fmt::format("prefill of {} token{}", length, length == 1 ? "" : "s")
                            : fmt::format("decode at position {}", start);
    const auto pass = [&] { return run_pass(subject, ids, start, length, top_k); };
    if (on_device) traced.counts = counts_of(backend, pass);
    // A device's times are those of a pass without the reading of norms, which come from another.
    backend.start(norms && !on_device);
    const TokenId next = pass();
    backend.stop();
    traced.events = backend.events();
    const std::span<const CopyTime> copies = backend.measured_copies();
    traced.copies.assign(copies.begin(), copies.end());
    if (norms && on_device) add_norms(backend, pass, traced);
    steps.push_back(std::move(traced));
    ids.push_back(next);
  }
  return steps;
}

namespace {

Json arguments_of(const TraceStep& step) {
  Json arguments{{"operations", step.events.size()}};
  if (step.counts.submits == 0) return arguments;
  arguments["submits"] = step.counts.submits;
  arguments["read_backs"] = step.counts.read_backs;
  arguments["read_back_bytes"] = step.counts.read_back_bytes;
  arguments["streamed_bytes"] = step.counts.streamed_bytes;
  return arguments;
}

}  // namespace

Json chrome_trace(std::span<const TraceStep> steps, const std::string& model) {
  constexpr double kMicroseconds = 1e6;
  Json events = Json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "qwench " + model}}}});
  const std::array<std::string, 4> tracks{"steps", "layers", "operations", "copies"};
  const bool streams =
      std::any_of(steps.begin(), steps.end(), [](const auto& s) { return !s.copies.empty(); });
  for (size_t i = 0; i < tracks.size() - (streams ? 0 : 1); ++i) {
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
         arguments_of(step));
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
      if (event.fused) arguments["fused"] = true;
      span(event.name, 3, origin + event.start, origin + event.start + event.seconds, std::move(arguments));
    }
    for (const CopyTime& copy : step.copies)
      span(fmt::format("layer {}", copy.layer), 4, origin + copy.start, origin + copy.start + copy.seconds,
           Json::object());
    origin += last.start + last.seconds;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}  // namespace qwench
