#pragma once

#include <cstdint>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// One request on its way through the scheduler: its tokens and its place in the KV cache.
struct Sequence {
  size_t request = 0;        // index into the call's requests
  std::vector<TokenId> ids;  // the prompt, then the output
  int prompt_length = 0;
  int computed = 0;  // positions whose keys and values are in the cache
  std::vector<int32_t> block_table;

  int length() const { return static_cast<int>(ids.size()); }
  int pending() const { return length() - computed; }  // tokens to compute before the next can be drawn
};

}  // namespace qwench
