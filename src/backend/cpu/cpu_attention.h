#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_memory.h"
#include "core/thread_pool.h"
#include "kernels/attention.h"

namespace qwench {

/// Attention over a batch of sequences, shared among threads, with the memory that takes.
class CpuAttention {
 public:
  /// Prepares for so many threads and heads of this size. Throws Error (out_of_memory).
  void reserve(int threads, int head_dim);

  /// Computes all rows of all sequences. `args` says all that does not depend on the sequence.
  void run(ThreadPool& pool, const AttentionArgs& args, std::span<const SequenceRows> sequences);

 private:
  bool shares_parts(int threads, const AttentionArgs& args, std::span<const SequenceRows> sequences) const;
  void run_pieces(ThreadPool& pool, const AttentionArgs& args, std::span<const SequenceRows> sequences);
  void run_parts(ThreadPool& pool, const AttentionArgs& args, std::span<const SequenceRows> sequences);

  std::vector<AttentionScratch> scratch_;  // [threads]
  CpuMemory parts_;                        // results of parts, where threads share a sequence's keys
};

}  // namespace qwench
