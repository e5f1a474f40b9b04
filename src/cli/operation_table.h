#pragma once

#include <string>

#include "verify/trace.h"

namespace qwench::cli {

/// A step's operations with their times, shares, bytes and shapes, and their sums over the layers; with
/// `totals_only` the sums alone.
std::string operation_table(const TraceStep& step, bool totals_only);

}  // namespace qwench::cli
