#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "backend/backend.h"

namespace qwench {
namespace {

// Rows of prompts in a pass with sequences that decode: each waits for the pass. Matrices are multiplied
// nearly as fast with so many rows as with more.
constexpr int kPromptRowsBesideDecoding = 128;

int blocks_of(int positions) { return (positions + kBlockSize - 1) / kBlockSize; }

}  // namespace

Scheduler::Scheduler(BlockPool& pool, int max_batch, int max_batch_tokens, PrefixCache* prefixes)
    : pool_(pool), prefixes_(prefixes), max_batch_(max_batch), max_batch_tokens_(max_batch_tokens) {
  running_.reserve(static_cast<size_t>(max_batch));
  scheduled_.reserve(static_cast<size_t>(max_batch));
}

void Scheduler::add(Sequence& sequence) { waiting_.push_back(&sequence); }

std::span<const ScheduledRows> Scheduler::schedule() {
  scheduled_.clear();
  admit();
  int budget = max_batch_tokens_;
  // Drafts take what the next tokens of all leave.
  int spare = budget - static_cast<int>(std::count_if(running_.begin(), running_.end(),
                                                      [](const Sequence* s) { return s->pending() == 1; }));
  for (const bool decoding : {true, false}) {
    if (!decoding && !scheduled_.empty()) budget = std::min(budget, kPromptRowsBesideDecoding);
    for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
      Sequence& sequence = *running_[i];
      if ((sequence.pending() == 1) != decoding) continue;
      if (!decoding) use_prefix(sequence);
      sequence.drop_drafts(decoding ? std::clamp(spare, 0, sequence.drafted) : 0);
      spare -= sequence.drafted;
      const int rows = std::min(sequence.pending() + sequence.drafted, budget);
      ScheduledRows part{&sequence, rows, rows >= sequence.pending()};
      if (!reserve(part)) break;
      scheduled_.push_back(part);
      budget -= part.rows;
    }
  }
  return scheduled_;
}

void Scheduler::commit(Sequence& sequence, int rows) {
  sequence.computed += rows;
  if (prefixes_ == nullptr || !sequence.shares) return;
  while ((sequence.indexed + 1) * kBlockSize <= sequence.computed) {
    if (!prefixes_->insert(sequence.ids, sequence.salt, static_cast<size_t>(sequence.indexed),
                           sequence.block_table)) {
      sequence.shares = false;
      return;
    }
    ++sequence.indexed;
  }
}

void Scheduler::fork(const Sequence& parent, Sequence& child) {
  if (static_cast<int>(running_.size()) >= max_batch_) {
    waiting_.push_front(&child);
    return;
  }
  child.computed = parent.computed;
  child.indexed = parent.indexed;
  child.block_table.assign(parent.block_table.begin(),
                           parent.block_table.begin() + blocks_of(parent.computed));
  for (const int32_t block : child.block_table) pool_.add_reference(block);
  running_.push_back(&child);
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
    if (!admit(next, promised)) return;
    promised += blocks_of(next.length() + 1) - static_cast<int>(next.block_table.size());
    running_.push_back(&next);
    waiting_.pop_front();
  }
}

bool Scheduler::admit(Sequence& next, int promised) {
  use_prefix(next);
  const int needed = blocks_of(next.length() + 1) - static_cast<int>(next.block_table.size());
  if (!running_.empty() && promised + needed > pool_.available()) {
    release_blocks(next);
    return false;
  }
  if (prefixes_ != nullptr && next.shares && !next.whole) {
    counts_.prefix_queries += next.length();
    counts_.prefix_hits += next.computed;
  }
  if (next.cached_tokens < 0) next.cached_tokens = std::min(next.computed, next.prompt_length);
  return true;
}

/// Goes on with what others have computed of the same tokens, all but the last of them: its logits are
/// wanted.
void Scheduler::use_prefix(Sequence& sequence) {
  if (prefixes_ == nullptr || !sequence.shares || sequence.whole) return;
  if (sequence.indexed != static_cast<int>(sequence.block_table.size()) ||
      sequence.indexed * kBlockSize != sequence.computed) {
    return;
  }
  const auto usable = static_cast<size_t>(sequence.length() - 1);
  sequence.indexed +=
      prefixes_->extend(std::span(sequence.ids).first(usable), sequence.salt, sequence.block_table);
  sequence.computed = sequence.indexed * kBlockSize;
}

int Scheduler::blocks_missing(const Sequence& sequence, int positions) const {
  // There may be more blocks than positions: of drafts that were wrong.
  return std::max(0, blocks_of(positions) - static_cast<int>(sequence.block_table.size())) +
         (writes_shared_block(sequence) ? 1 : 0);
}

bool Scheduler::writes_shared_block(const Sequence& sequence) const {
  if (sequence.computed % kBlockSize == 0) return false;
  return pool_.references(sequence.block_table[static_cast<size_t>(sequence.computed / kBlockSize)]) > 1;
}

bool Scheduler::reserve(ScheduledRows& part) {
  Sequence& sequence = *part.sequence;
  // Nobody is preempted for a guess.
  while (sequence.drafted > 0 &&
         pool_.available() < blocks_missing(sequence, sequence.computed + part.rows)) {
    sequence.drop_drafts(sequence.drafted - 1);
    --part.rows;
  }
  const int positions = sequence.computed + part.rows;
  while (pool_.available() < blocks_missing(sequence, positions)) {
    const bool itself = running_.back() == &sequence;
    preempt_last();
    if (itself) return false;
  }
  if (writes_shared_block(sequence)) {
    int32_t& block = sequence.block_table[static_cast<size_t>(sequence.computed / kBlockSize)];
    part.copy_from = block;
    part.copy_to = pool_.allocate();
    pool_.release(block);
    block = part.copy_to;
  }
  while (static_cast<int>(sequence.block_table.size()) < blocks_of(positions))
    sequence.block_table.push_back(pool_.allocate());
  return true;
}

void Scheduler::preempt_last() {
  Sequence& last = *running_.back();
  running_.pop_back();
  std::erase_if(scheduled_, [&](const ScheduledRows& part) { return part.sequence == &last; });
  release_blocks(last);
  last.drop_drafts();
  waiting_.push_front(&last);
  ++counts_.preemptions;
}

// The last block first: a block of the prefix cache goes before the one it builds on.
void Scheduler::release_blocks(Sequence& sequence) {
  for (auto block = sequence.block_table.rbegin(); block != sequence.block_table.rend(); ++block)
    pool_.release(*block);
  sequence.block_table.clear();
  sequence.computed = 0;
  sequence.indexed = 0;
}

void Scheduler::check(std::span<const int32_t> held) const {
  std::vector<int> references(static_cast<size_t>(pool_.size()), 0);
  for (const int32_t block : held) ++references[static_cast<size_t>(block)];
  for (const Sequence* sequence : running_) {
    if (static_cast<int>(sequence->block_table.size()) < blocks_of(sequence->computed))
      throw std::logic_error(fmt::format("{} positions are computed, but there are only {} blocks",
                                         sequence->computed, sequence->block_table.size()));
    if (sequence->indexed * kBlockSize > sequence->computed)
      throw std::logic_error("a block is indexed that is not computed");
    for (int i = 0; i < static_cast<int>(sequence->block_table.size()); ++i) {
      const int32_t block = sequence->block_table[static_cast<size_t>(i)];
      ++references[static_cast<size_t>(block)];
      if (i < sequence->indexed && !pool_.kept(block))
        throw std::logic_error(fmt::format("block {} counts as indexed, but is not kept", block));
      if (i * kBlockSize >= sequence->computed && pool_.references(block) != 1)
        throw std::logic_error(
            fmt::format("block {} is to be written, but has {} references", block, pool_.references(block)));
    }
  }
  for (const Sequence* sequence : waiting_) {
    if (!sequence->block_table.empty() || sequence->computed != 0)
      throw std::logic_error("a sequence holds blocks while it waits");
  }
  for (int32_t block = 0; block < pool_.size(); ++block) {
    if (references[static_cast<size_t>(block)] != pool_.references(block))
      throw std::logic_error(fmt::format("block {} is held by {}, but counts {} references", block,
                                         references[static_cast<size_t>(block)], pool_.references(block)));
  }
  pool_.check();
  if (prefixes_ != nullptr) prefixes_->check();
}

}  // namespace qwench
