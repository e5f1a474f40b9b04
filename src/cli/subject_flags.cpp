#include "cli/subject_flags.h"

#include <fmt/format.h>

#include "cli/terminal.h"
#include "qwench/error.h"

namespace qwench::cli {

std::unique_ptr<Subject> load_subject(const std::shared_ptr<const Checkpoint>& checkpoint,
                                      SubjectOptions options) {
  ProgressLine line;
  const std::string name = printable(checkpoint->path().filename().string());
  options.progress = [&](double share) { line.update("loading " + name, share); };
  return std::make_unique<Subject>(checkpoint, options);
}

SubjectOptions subject_options(const EngineOptions& options, DType stored) {
  SubjectOptions subject;
  subject.dtype = options.dtype;
  subject.packed_bf16 = options.packed_bf16;
  subject.kv_dtype = options.cells(stored);
  subject.threads = options.threads;
  subject.device = options.device;
  subject.gpu_layers = options.gpu_layers;
  subject.device_memory = options.device_memory;
  return subject;
}

std::string banner(Subject& subject, const std::filesystem::path& path, const SubjectOptions& options) {
  const WeightTotals weights = totals(subject.decoder().weights());
  return fmt::format("qwench: {} | {}, {} parameters | {} weights, {} cache | {}, {} thread{}",
                     printable(path.filename().string()), subject.config().family,
                     short_number(static_cast<double>(weights.parameters)), name(weights.main_type),
                     name(options.kv_dtype), subject.backend().description(), subject.threads(),
                     subject.threads() == 1 ? "" : "s");
}

}  // namespace qwench::cli
