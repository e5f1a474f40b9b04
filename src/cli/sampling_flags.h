#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "qwench/sampling.h"

namespace qwench::cli {

/// How tokens are chosen and when the text ends, as flags; each has the name of its member in SamplingParams
/// or StopParams, besides the familiar short ones.
class SamplingFlags {
 public:
  void add_to(CommandLine& line);
  /// To be called once after parsing; ranges are checked here, before a model is loaded. Throws Error
  /// (invalid_argument) or UsageError.
  void finish();

  const SamplingOptions& sampling() const { return sampling_; }
  const StopParams& stop() const { return stop_; }
  SamplingOptions& sampling() { return sampling_; }

 private:
  SamplingOptions sampling_;
  StopParams stop_;
  std::vector<std::string> logit_bias_;
};

}  // namespace qwench::cli
