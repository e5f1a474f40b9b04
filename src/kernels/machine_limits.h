#pragma once

#include "core/thread_pool.h"

namespace qwench {

/// What this machine can do with these threads, as measured: the ceilings that kernels are judged by.
struct MachineLimits {
  double read_gb_per_s = 0;    ///< reading memory far larger than the caches, 10^9 bytes
  double f32_gflop_per_s = 0;  ///< fused multiply-adds in registers, 2 operations each
  /// Dot products of unsigned and signed bytes into 32 bits, in registers, 2 operations a product: by VNNI's
  /// vpdpbusd, by pmaddubsw, pmaddwd and an addition, or by their like. 0 where there is no such instruction.
  double int8_gop_per_s = 0;
};

/// Takes about two seconds and 1 GB, or less where a quarter of the available memory is less. Throws Error
/// (out_of_memory).
MachineLimits measure_machine(ThreadPool& pool);

}  // namespace qwench
