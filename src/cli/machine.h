#pragma once

#include "kernels/machine_limits.h"

namespace qwench::cli {

/// What this machine can do with `threads` threads (0: the cores this process may use): measured once, in a
/// second or two, and kept in the user's cache for this processor, instruction set and number of threads.
/// `fresh` measures anew.
MachineLimits machine_limits(int threads, bool fresh = false);

}  // namespace qwench::cli
