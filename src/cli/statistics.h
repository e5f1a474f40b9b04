#pragma once

#include <string>

#include "qwench/engine.h"

namespace qwench::cli {

/// The closing line of an answer: prompt tokens, time to first token, prefill and decode speed, peak memory.
std::string statistics(const Result& result);

/// What is added to that line where the answer was cut: by the context, by -n, or by generation_config.json.
/// Else "".
std::string cut_note(const Result& result, const Request& request, const ModelInfo& info);

/// The same of a batch that took `seconds`.
std::string batch_statistics(std::span<const Result> results, double seconds);

}  // namespace qwench::cli
