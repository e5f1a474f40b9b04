#include "engine/token_counts.h"

#include <algorithm>

namespace qwench {

size_t TokenCounts::slot_of(TokenId id) const {
  // Fibonacci hashing: neighbouring ids spread over the table.
  const size_t mask = slots_.size() - 1;
  size_t slot =
      static_cast<size_t>((static_cast<uint64_t>(static_cast<uint32_t>(id)) * 0x9E3779B97F4A7C15ULL) >> 32) &
      mask;
  while (slots_[slot] >= 0 && entries_[static_cast<size_t>(slots_[slot])].id != id) slot = (slot + 1) & mask;
  return slot;
}

TokenCounts::Entry& TokenCounts::find(TokenId id) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  const size_t slot = slot_of(id);
  if (slots_[slot] < 0) {
    slots_[slot] = static_cast<int32_t>(entries_.size());
    entries_.push_back({id, 0});
  }
  return entries_[static_cast<size_t>(slots_[slot])];
}

void TokenCounts::grow() {
  slots_.assign(std::max<size_t>(64, 2 * slots_.size()), -1);
  for (size_t i = 0; i < entries_.size(); ++i) slots_[slot_of(entries_[i].id)] = static_cast<int32_t>(i);
}

}  // namespace qwench
