#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/model_flags.h"
#include "verify/subject.h"

namespace qwench::cli {

/// Loads a model to be examined, with a progress line on a terminal.
std::unique_ptr<Subject> load_subject(const std::shared_ptr<const Checkpoint>& checkpoint,
                                      SubjectOptions options);

/// What the flags about computing say, of a model whose weights are stored so (engine/model_plan.h).
SubjectOptions subject_options(const EngineOptions& options, DType stored);

/// "qwench: Qwen3-0.6B | qwen3 | bf16 weights, f32 cache | CPU (AVX2), 8 threads"
std::string banner(Subject& subject, const std::filesystem::path& path, const SubjectOptions& options);

}  // namespace qwench::cli
