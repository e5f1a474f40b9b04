#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "verify/subject.h"
#include "verify/tracing_backend.h"

namespace qwench {

/// One forward pass with its logits and the choice of the next token.
struct TraceStep {
  std::string name;  ///< "prefill of 6 tokens", "decode at position 6"
  std::vector<TraceEvent> events;
  // On a device:
  DeviceCounts counts;           ///< submits and read-backs of the step as it runs untraced
  std::vector<CopyTime> copies;  ///< of streamed layers, beside the events

  double seconds() const;  ///< of all operations
};

/// All events of one kind, over the layers.
struct TraceTotal {
  std::string name;
  int count = 0;
  double seconds = 0;
  uint64_t bytes = 0;
};
/// The totals by name, the longest first.
std::vector<TraceTotal> totals(const TraceStep& step);

/// Runs the prompt in one pass and then `decode_steps` greedy tokens, after one pass that is not recorded (it
/// reads the weights from disk). With `top_k`, up to kMostTop and to the vocabulary's size, each step asks
/// the backend for so many of the largest logits, as a sampled one does; 0: for the greedy token. `backend`
/// is the subject's own. The subject needs max_rows of the prompt's length, and decode_steps positions more.
std::vector<TraceStep> trace_steps(Subject& subject, TracingBackend& backend, std::span<const TokenId> prompt,
                                   int decode_steps, bool norms, int top_k = 0);

/// The steps in the Trace Event Format that chrome://tracing and Perfetto read ("Trace Event Format", Google,
/// 2016: complete events, ph X, times in microseconds).
Json chrome_trace(std::span<const TraceStep> steps, const std::string& model);

}  // namespace qwench
