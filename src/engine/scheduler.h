#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/prefix_cache.h"
#include "engine/sequence.h"
#include "model/block_pool.h"

namespace qwench {

/// A sequence's share of one forward pass: its next `rows` pending tokens and, where the next one is due,
/// its drafts.
struct ScheduledRows {
  Sequence* sequence;
  int rows;                // drafts included
  bool draws;              // the pass ends with logits for the next token
  int32_t copy_from = -1;  // before the pass, this block's content goes to copy_to (copy on write)
  int32_t copy_to = -1;
};

struct SchedulerCounts {
  int64_t preemptions = 0;
  int64_t prefix_queries = 0;  // tokens looked up in the prefix cache by sequences that joined
  int64_t prefix_hits = 0;     // tokens found there
};

/// Continuous batching: which sequences run in the next forward pass, and with how many tokens. Sequences
/// whose next token is due go first, then prompts in chunks, oldest first, up to a budget of rows; waiting
/// ones join, first come first served, while blocks last, with what the prefix cache holds of them. When
/// blocks run out the sequence that joined last gives its blocks back and is computed again later, but for
/// what the prefix cache still holds then. Used by the thread that owns the model; sequences belong to the
/// caller.
class Scheduler {
 public:
  /// Without `prefixes`, nothing is shared but by fork().
  Scheduler(BlockPool& pool, int max_batch, int max_batch_tokens, PrefixCache* prefixes = nullptr);

  /// Takes a sequence into the queue. A lone sequence of its final length must fit the pool.
  void add(Sequence& sequence);
  /// The next pass; empty only when nothing is left. Valid until the next call.
  std::span<const ScheduledRows> schedule();
  /// The first `rows` of a scheduled part's rows are computed and hold the sequence's tokens: all of them,
  /// less the drafts that were wrong.
  void commit(Sequence& sequence, int rows);
  void commit(std::span<const ScheduledRows> parts) {
    for (const ScheduledRows& part : parts) commit(*part.sequence, part.rows);
  }
  /// Takes in a sequence that begins like `parent`, with whose blocks it starts: `child.ids` begins with the
  /// parent's computed tokens. It joins at once where the batch has room, else it waits first in the queue.
  void fork(const Sequence& parent, Sequence& child);
  /// Forgets a sequence, queued or running, and frees its blocks.
  void remove(Sequence& sequence);

  bool empty() const { return waiting_.empty() && running_.empty(); }
  std::span<Sequence* const> running() const { return running_; }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  const SchedulerCounts& counts() const { return counts_; }

  /// Counts every block anew. Throws std::logic_error where sequences, pool and prefix cache contradict each
  /// other: for tests and debug builds. `held` are blocks that others hold.
  void check(std::span<const int32_t> held = {}) const;

 private:
  bool reserve(ScheduledRows& part);  // preempts later sequences if it must; false: it was preempted itself
  int blocks_missing(const Sequence& sequence, int positions) const;
  bool writes_shared_block(const Sequence& sequence) const;
  void use_prefix(Sequence& sequence);
  void preempt_last();
  void release_blocks(Sequence& sequence);
  void admit();
  bool admit(Sequence& next, int promised);

  BlockPool& pool_;
  PrefixCache* const prefixes_;
  const int max_batch_;
  const int max_batch_tokens_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // in order of joining
  std::vector<ScheduledRows> scheduled_;
  SchedulerCounts counts_;
};

}  // namespace qwench
