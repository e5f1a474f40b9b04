#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qwench {

/// One forward pass, as the scheduler composed it.
struct PassRecord {
  int64_t number = 0;    ///< from 1
  int sequences = 0;     ///< that had rows in it
  int prefill_rows = 0;  ///< tokens of prompts, and of what is computed again
  int decode_rows = 0;   ///< one for each sequence whose next token was due, and its drafts
  double seconds = 0;
};

inline constexpr int kRecordedPasses = 256;

/// What the engine does, for those who watch.
struct EngineActivity {
  std::vector<PassRecord> passes;  ///< the last of them, at most kRecordedPasses, oldest first
  /// The KV cache, at most kBlockCells cells that stand for `blocks_per_cell` blocks each, in order: '.'
  /// free, 'c' cached (held by nobody, kept), 'u' used by one sequence, 's' shared by several; of different
  /// blocks the last in this order. As it was at most a pass ago, or when somebody last asked.
  std::string blocks;
  int blocks_per_cell = 1;
  int shared_blocks = 0;
};

inline constexpr int kBlockCells = 1024;

}  // namespace qwench
