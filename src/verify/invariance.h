#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qwench/engine.h"

namespace qwench {

struct InvarianceOptions {
  std::optional<DType> dtype;
  bool packed_bf16 = false;
  std::optional<DType> kv_dtype;  ///< as EngineOptions
  std::string device = "cpu";     ///< as EngineOptions, like the two below
  std::optional<int> gpu_layers;
  uint64_t device_memory = 0;
  int threads = 0;  ///< the most; 0: the cores, at least 2
  uint64_t seed = 0;
  int rounds = 8;
  int requests = 64;        ///< different ones, 1 to 64 of which run in a round
  int longest_prompt = 96;  ///< tokens; cut to what the model can take
  int most_tokens = 16;     ///< of an answer
  std::function<void(const std::string& what)> progress;
};

/// One random mix of requests.
struct InvarianceRound {
  int requests = 0;
  int completions = 0;  ///< compared
  int cancelled = 0;    ///< others that came and were cancelled on their way
  int threads = 0;
  int max_batch = 0;
  int max_batch_tokens = 0;
  int draft_tokens = 0;  ///< 0: without speculative decoding
  EngineStats stats;
  int tokens = 0;     ///< compared, with their log-probabilities
  int different = 0;  ///< completions that are not those of the request alone
  std::string first_difference;
};

struct InvarianceReport {
  std::vector<InvarianceRound> rounds;

  bool ok() const;
  std::string verdict() const;  ///< one sentence
};

/// What the engine promises of batches, tried on a model: random requests, greedy and sampled, with common
/// beginnings and several completions, that arrive at random in random batches, with caches too small for
/// them, chunks of all sizes, prefix hits, forks, preemptions, cancelled neighbours, guesses and other
/// numbers of threads, get the very tokens and log-probabilities, bit for bit, that each gets alone. Throws
/// Error.
InvarianceReport check_invariance(const std::filesystem::path& model, const InvarianceOptions& options = {});

}  // namespace qwench
