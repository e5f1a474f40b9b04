#include "engine/scheduler.h"

#include <algorithm>

#include "backend/backend.h"

namespace qwench {
namespace {

int blocks_of(int positions) { return (positions + kBlockSize - 1) / kBlockSize; }

}  // namespace

Scheduler::Scheduler(BlockPool& pool, int max_batch, int max_batch_tokens)
    : pool_(pool), max_batch_(max_batch), max_batch_tokens_(max_batch_tokens) {}

void Scheduler::add(Sequence& sequence) { waiting_.push_back(&sequence); }

std::span<const ScheduledRows> Scheduler::schedule() {
  scheduled_.clear();
  admit();
  int budget = max_batch_tokens_;
  for (const bool decoding : {true, false}) {
    for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
      Sequence& sequence = *running_[i];
      if ((sequence.pending() == 1) != decoding) continue;
      const int rows = std::min(sequence.pending(), budget);
      if (!reserve(sequence, sequence.computed + rows)) break;
      scheduled_.push_back({&sequence, rows});
      budget -= rows;
    }
  }
  return scheduled_;
}

void Scheduler::commit(std::span<const ScheduledRows> rows) {
  for (const ScheduledRows& part : rows) part.sequence->computed += part.rows;
}

void Scheduler::remove(Sequence& sequence) {
  std::erase(waiting_, &sequence);
  std::erase(running_, &sequence);
  release_blocks(sequence);
}

// A sequence joins when there is room for all it has so far and its next token, so that it is not thrown out
// at once.
void Scheduler::admit() {
  int promised = 0;
  for (const Sequence* sequence : running_) {
    promised += blocks_of(sequence->length()) - static_cast<int>(sequence->block_table.size());
  }
  while (!waiting_.empty() && static_cast<int>(running_.size()) < max_batch_) {
    Sequence& next = *waiting_.front();
    const int needed = blocks_of(next.length() + 1);
    if (!running_.empty() && promised + needed > pool_.available()) return;
    promised += needed;
    running_.push_back(&next);
    waiting_.pop_front();
  }
}

bool Scheduler::reserve(Sequence& sequence, int positions) {
  const int missing = blocks_of(positions) - static_cast<int>(sequence.block_table.size());
  while (pool_.available() < missing) {
    const bool itself = running_.back() == &sequence;
    preempt_last();
    if (itself) return false;
  }
  for (int i = 0; i < missing; ++i) sequence.block_table.push_back(pool_.allocate());
  return true;
}

void Scheduler::preempt_last() {
  Sequence& last = *running_.back();
  running_.pop_back();
  std::erase_if(scheduled_, [&](const ScheduledRows& part) { return part.sequence == &last; });
  release_blocks(last);
  waiting_.push_front(&last);
  ++preemptions_;
}

void Scheduler::release_blocks(Sequence& sequence) {
  for (const int32_t block : sequence.block_table) pool_.release(block);
  sequence.block_table.clear();
  sequence.computed = 0;
}

}  // namespace qwench
