#pragma once

#include <memory>

#include "backend/backend.h"
#include "core/thread_pool.h"

namespace qwench {

/// How the CPU keeps matrices; no choice changes a bit of what is computed.
struct CpuOptions {
  /// bf16 in fewer bytes (kernels/packed_bf16.h).
  bool packed_bf16 = false;
  /// The first batch, whose answer someone waits for, reads matrices that keep a plain type from the mapped
  /// file; before the second one all are packed into panels, which are read faster, and their pages of the
  /// file are dropped: tensors must be of a mapped file, and weights live as long as batches are begun. Not
  /// with packed_bf16.
  bool pack_later = false;
};

/// The CPU with the best instruction set it has, or the one that the environment's QWENCH_CPU names
/// (kernels/isa.h). Activations and sums are f32; docs/numerics.md has the order of the sums. `pool` must
/// outlive the backend. Throws Error (invalid_argument) for an instruction set that is not there,
/// out_of_memory.
std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool, const CpuOptions& options = {});

}  // namespace qwench
