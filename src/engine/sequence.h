#pragma once

#include <cstdint>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

struct Job;

/// One completion on its way through the scheduler: its tokens and its place in the KV cache.
struct Sequence {
  std::vector<TokenId> ids;  // the prompt, then the output, then `drafted` guesses at what comes next
  int prompt_length = 0;
  int drafted = 0;
  int computed = 0;  // positions whose keys and values are in the cache
  std::vector<int32_t> block_table;

  bool shares = true;      // finds its beginning in the prefix cache, and leaves it there
  bool whole = false;      // every row is to be computed: nothing may be taken from the prefix cache
  uint64_t salt = 0;       // equal beginnings under different ones have different keys and values
  int indexed = 0;         // leading blocks of block_table that are in the prefix cache
  int cached_tokens = -1;  // found there when it first joined the batch; -1: it did not yet

  Job* job = nullptr;  // whose completion `index` this is; for the caller
  int index = 0;

  int length() const { return static_cast<int>(ids.size()) - drafted; }
  int pending() const { return length() - computed; }  // tokens to compute before the next can be drawn
  void drop_drafts(int kept = 0) {
    ids.resize(ids.size() - static_cast<size_t>(drafted - kept));
    drafted = kept;
  }
};

}  // namespace qwench
