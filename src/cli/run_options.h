#pragma once

#include <optional>
#include <string>

#include "cli/chat_input.h"
#include "cli/command_line.h"
#include "cli/model_flags.h"
#include "cli/sampling_flags.h"
#include "cli/text_source.h"
#include "qwench/constraint.h"

namespace qwench::cli {

/// The command line of `qwench run`.
struct RunOptions {
  ModelFlags model;
  TextSource source;
  SamplingFlags sampling;
  TemplateFlags templates;
  std::string system;
  bool raw = false;
  bool json = false;
  bool jsonl = false;
  bool hide_thinking = false;
  bool quiet = false;
  std::optional<int> logprobs;
  std::optional<Constraint> constraint;

  void add_to(CommandLine& line);
  /// To be called once after parsing: contradictions are found before a model is loaded. Throws UsageError,
  /// Error.
  void finish();

 private:
  std::optional<std::string> grammar_;
  std::optional<std::string> json_schema_;
  std::optional<std::string> regex_;
};

/// Answers the lines of standard input in one batch; returns the exit code.
int run_lines(Engine& engine, const RunOptions& options);

/// {"text", "ids", "finish_reason", "usage", "logprobs"?}
Json to_json(const Result& result, bool logprobs);

}  // namespace qwench::cli
