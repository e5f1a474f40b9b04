#include "model/block_pool.h"

#include <fmt/format.h>

#include <cassert>
#include <stdexcept>

namespace qwench {

BlockPool::BlockPool(int blocks)
    : references_(static_cast<size_t>(blocks), 0),
      kept_(static_cast<size_t>(blocks), 0),
      links_(static_cast<size_t>(blocks)) {
  free_.reserve(static_cast<size_t>(blocks));
  for (int32_t block = blocks - 1; block >= 0; --block) free_.push_back(block);
}

int32_t BlockPool::allocate() {
  assert(available() > 0);
  int32_t block = oldest_;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else {
    unlink_idle(block);
    kept_[static_cast<size_t>(block)] = 0;
    if (on_evict_) on_evict_(block);
  }
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::add_reference(int32_t block) {
  assert(references(block) > 0 || kept(block));
  if (references(block) == 0) unlink_idle(block);
  ++references_[static_cast<size_t>(block)];
}

void BlockPool::release(int32_t block) {
  assert(references(block) > 0);
  if (--references_[static_cast<size_t>(block)] > 0) return;
  if (kept(block)) {
    append_idle(block);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::keep(int32_t block) {
  assert(references(block) > 0);
  kept_[static_cast<size_t>(block)] = 1;
}

void BlockPool::append_idle(int32_t block) {
  link(block) = {newest_, -1};
  (newest_ < 0 ? oldest_ : link(newest_).next) = block;
  newest_ = block;
  ++idle_;
}

void BlockPool::unlink_idle(int32_t block) {
  const Link at = link(block);
  (at.previous < 0 ? oldest_ : link(at.previous).next) = at.next;
  (at.next < 0 ? newest_ : link(at.next).previous) = at.previous;
  link(block) = {};
  --idle_;
}

void BlockPool::check() const {
  std::vector<int> seen(references_.size(), 0);
  const auto visit = [&](int32_t block, bool idle) {
    const auto at = static_cast<size_t>(block);
    if (++seen[at] > 1) throw std::logic_error(fmt::format("block {} is listed twice as available", block));
    if (references_[at] != 0)
      throw std::logic_error(
          fmt::format("block {} is available, but has {} references", block, references_[at]));
    if ((kept_[at] != 0) != idle) throw std::logic_error(fmt::format("block {} is in the wrong list", block));
  };
  for (const int32_t block : free_) visit(block, false);
  int idle = 0;
  int32_t previous = -1;
  for (int32_t block = oldest_; block >= 0; block = links_[static_cast<size_t>(block)].next) {
    visit(block, true);
    if (links_[static_cast<size_t>(block)].previous != previous)
      throw std::logic_error(fmt::format("the list of idle blocks is broken at {}", block));
    previous = block;
    ++idle;
  }
  if (idle != idle_ || previous != newest_)
    throw std::logic_error(fmt::format("{} blocks are idle, but {} are counted", idle, idle_));
  for (size_t i = 0; i < references_.size(); ++i) {
    if (references_[i] < 0 || (references_[i] == 0) != (seen[i] == 1))
      throw std::logic_error(fmt::format("block {} is lost: {} references, in no list", i, references_[i]));
  }
}

}  // namespace qwench
