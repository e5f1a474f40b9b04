#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// Which tokens a sequence holds and how often its output does: what the penalties need, kept as tokens come.
/// A hash table with the entries apart and in order of first appearance: one pass over the distinct tokens a
/// step, nothing rebuilt, and no room for the other 150,000 of the vocabulary.
class TokenCounts {
 public:
  struct Entry {
    TokenId id;
    int32_t output;  ///< occurrences in the output; 0 for a token of the prompt alone
  };

  void add_prompt(TokenId id) { find(id); }
  void add_output(TokenId id) { ++find(id).output; }
  std::span<const Entry> entries() const { return entries_; }

 private:
  Entry& find(TokenId id);
  void grow();
  size_t slot_of(TokenId id) const;

  std::vector<Entry> entries_;
  std::vector<int32_t> slots_;  // index into entries_, -1 for none; a power of two, at most half full
};

}  // namespace qwench
