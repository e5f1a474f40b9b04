#pragma once

#include "core/thread_pool.h"

namespace qwench {

/// What this machine can do with these threads, as measured: the ceilings that kernels are judged by.
struct MachineLimits {
  double read_gb_per_s = 0;    ///< reading memory far larger than the caches, 10^9 bytes
  double f32_gflop_per_s = 0;  ///< fused multiply-adds in registers, 2 operations each
};

/// Takes about a second and 256 MB. Throws Error (out_of_memory).
MachineLimits measure_machine(ThreadPool& pool);

}  // namespace qwench
