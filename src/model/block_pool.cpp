#include "model/block_pool.h"

#include <cassert>

namespace qwench {

BlockPool::BlockPool(int blocks) : references_(static_cast<size_t>(blocks), 0) {
  free_.reserve(static_cast<size_t>(blocks));
  for (int32_t block = blocks - 1; block >= 0; --block) free_.push_back(block);
}

int32_t BlockPool::allocate() {
  assert(!free_.empty());
  const int32_t block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::add_reference(int32_t block) {
  assert(references(block) > 0);
  ++references_[static_cast<size_t>(block)];
}

void BlockPool::release(int32_t block) {
  assert(references(block) > 0);
  if (--references_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace qwench
