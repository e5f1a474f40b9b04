#pragma once

#include <string>

#include "qwench/engine.h"

namespace qwench::cli {

/// The closing line of an answer: prompt tokens, time to first token, prefill and decode speed, peak memory.
std::string statistics(const Result& result);

/// The same of a batch that took `seconds`.
std::string batch_statistics(std::span<const Result> results, double seconds);

}  // namespace qwench::cli
