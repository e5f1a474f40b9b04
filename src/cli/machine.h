#pragma once

#include <string>

#include "kernels/machine_limits.h"

namespace qwench::cli {

/// What this machine can do with `threads` threads (0: the cores this process may use): measured once, in a
/// second or two, and kept in the user's cache for this processor, instruction set and number of threads.
/// `fresh` measures anew.
MachineLimits machine_limits(int threads, bool fresh = false);

/// "AMD EPYC (AVX2)": the processor and the instruction set in use.
std::string machine_description();

}  // namespace qwench::cli
