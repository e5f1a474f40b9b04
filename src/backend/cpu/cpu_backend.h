#pragma once

#include <memory>

#include "backend/backend.h"
#include "core/thread_pool.h"

namespace qwench {

/// The CPU with the best instruction set it has, or the one that the environment's QWENCH_CPU names
/// (kernels/isa.h). Activations and sums are f32; docs/numerics.md has the order of the sums. `pool` must
/// outlive the backend. With `packed_bf16`, matrices of bf16 are kept in fewer bytes, exactly
/// (kernels/packed_bf16.h). Throws Error (invalid_argument) for an instruction set that is not there,
/// out_of_memory.
std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool, bool packed_bf16 = false);

}  // namespace qwench
