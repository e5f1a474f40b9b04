#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qwench {

/// Which blocks of the paged KV cache are in use, with reference counts (PagedAttention, Kwon et al. 2023,
/// arXiv:2309.06180). Used by the thread that owns the model.
class BlockPool {
 public:
  explicit BlockPool(int blocks);

  int size() const { return static_cast<int>(references_.size()); }
  int available() const { return static_cast<int>(free_.size()); }

  /// A block with one reference. There must be one available.
  int32_t allocate();
  void add_reference(int32_t block);
  /// The block is free again when its last reference goes.
  void release(int32_t block);
  int references(int32_t block) const { return references_[static_cast<size_t>(block)]; }

 private:
  std::vector<int32_t> free_;    // a stack: the block freed last is used first, while its memory is warm
  std::vector<int> references_;  // [blocks]
};

}  // namespace qwench
