#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// `count` ids of a vocabulary, the same for the same seed.
inline std::vector<TokenId> random_ids(int count, int vocab, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<TokenId> ids(static_cast<size_t>(count));
  for (TokenId& id : ids) id = static_cast<TokenId>(generator() % static_cast<uint64_t>(vocab));
  return ids;
}

}  // namespace qwench
