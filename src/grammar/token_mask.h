#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// Which ids may come next, a bit each.
struct TokenMask {
  std::vector<uint64_t> words;
  bool any = false;

  bool has(TokenId id) const {
    return (words[static_cast<size_t>(id) / 64] >> (static_cast<size_t>(id) % 64) & 1) != 0;
  }
  void set(TokenId id) {
    words[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
    any = true;
  }
};

}  // namespace qwench
