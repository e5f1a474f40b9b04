#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace qwench {

/// Which blocks of the paged KV cache are in use, with reference counts (PagedAttention, Kwon et al. 2023,
/// arXiv:2309.06180). A block whose content is kept stays as it is after its last reference went, until
/// blocks run out: those left alone longest are then given away first. Used by the thread that owns the
/// model.
class BlockPool {
 public:
  explicit BlockPool(int blocks);

  int size() const { return static_cast<int>(references_.size()); }
  /// Blocks that allocate() can give: free ones and kept ones without a reference.
  int available() const { return static_cast<int>(free_.size()) + idle_; }
  int used() const { return size() - available(); }
  int idle() const { return idle_; }  ///< kept without a reference

  /// A block with one reference. There must be one available. Where it was kept, `on_evict` hears of it
  /// first.
  int32_t allocate();
  /// To a block that has references or is kept.
  void add_reference(int32_t block);
  /// The block is free again when its last reference goes, or idle when it is kept.
  void release(int32_t block);
  int references(int32_t block) const { return references_[static_cast<size_t>(block)]; }

  /// Of a block with references: its content is worth keeping.
  void keep(int32_t block);
  bool kept(int32_t block) const { return kept_[static_cast<size_t>(block)] != 0; }
  void set_on_evict(std::function<void(int32_t block)> on_evict) { on_evict_ = std::move(on_evict); }

  /// Throws std::logic_error where the lists and counts contradict each other: for tests and debug builds.
  void check() const;

 private:
  struct Link {
    int32_t previous = -1;
    int32_t next = -1;
  };
  Link& link(int32_t block) { return links_[static_cast<size_t>(block)]; }
  void append_idle(int32_t block);
  void unlink_idle(int32_t block);

  std::vector<int32_t> free_;    // a stack: the block freed last is used first, while its memory is warm
  std::vector<int> references_;  // [blocks]
  std::vector<uint8_t> kept_;    // [blocks]
  std::vector<Link> links_;      // [blocks]: the idle ones, by the time of their release
  int32_t oldest_ = -1;
  int32_t newest_ = -1;
  int idle_ = 0;
  std::function<void(int32_t)> on_evict_;
};

}  // namespace qwench
