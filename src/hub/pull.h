#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "hub/cache.h"
#include "hub/environment.h"
#include "hub/selection.h"

namespace qwench::hub {

enum class Source { hugging_face, modelscope };

/// What a pull is about to do, before the first byte of it.
struct PullPlan {
  std::string commit;
  size_t files = 0;
  uint64_t bytes = 0;         ///< of all files
  uint64_t missing = 0;       ///< bytes that are not on disk yet
  uint64_t weight_bytes = 0;  ///< of the files that hold weights
  uint64_t disk_free = 0;
  uint64_t memory_free = 0;
  /// The model with holes for its weights (hub/preview.h), while on_plan runs; empty where nothing is to be
  /// fetched, the weights are small, or the headers could not be had.
  std::filesystem::path preview;
  bool needs_download() const { return missing > 0; }
};

struct PullProgress {
  uint64_t bytes = 0;  ///< to fetch in all, by this pull and unfinished ones before it
  uint64_t received = 0;
};

struct PullOptions {
  Source source = Source::hugging_face;
  Filter filter;
  int parallel = 4;  ///< files at once
  std::stop_token stop;
  std::function<void(const PullPlan&)> on_plan;          ///< called once
  std::function<void(const PullProgress&)> on_progress;  ///< some times a second, by the calling thread
  std::function<void(const std::string&)>
      on_notice;  ///< waits and second tries, from any thread, one at a time
};

struct PullResult {
  std::filesystem::path path;  ///< what Checkpoint::open takes
  std::string commit;
};

/// Brings a model into the cache at environment.cache: lists its files at the hub, chooses those that are
/// needed, fetches what is not there yet, and lets the revision mean it at the end. Two pulls of the same
/// file, by this program or by Python, wait for each other. Throws Error, and Stopped when `options.stop`
/// asks for it; what has been received is kept and a later pull goes on from there.
PullResult pull(const Environment& environment, const ModelName& model, const PullOptions& options);

}  // namespace qwench::hub
