#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "engine/completion_sink.h"
#include "engine/generation.h"
#include "qwench/request.h"

namespace qwench {

/// A submitted request with its completions. The first runs alone until the prompt is computed; the others
/// then start from its place in the cache. Of the thread that owns the model, once it has been submitted.
struct Job {
  /// Throws Error (invalid_argument) for settings out of range.
  Job(Request wanted, std::shared_ptr<CompletionSink> receiver, const GenerationContext& context,
      uint64_t salt)
      : request(std::move(wanted)), sink(std::move(receiver)), unfinished(request.n), forked(request.n == 1) {
    for (int i = 0; i < request.n; ++i) {
      generations.push_back(std::make_unique<Generation>(request, i, context));
      generations.back()->sequence().job = this;
      generations.back()->sequence().salt = salt;
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const Request request;
  const std::shared_ptr<CompletionSink> sink;
  std::vector<std::unique_ptr<Generation>> generations;  // [n]; null for those that have ended
  std::stop_token stop;
  int unfinished;
  bool forked;  // every completion has its own place
};

inline Generation& generation_of(const Sequence& sequence) {
  return *sequence.job->generations[static_cast<size_t>(sequence.index)];
}

}  // namespace qwench
