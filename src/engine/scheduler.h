#pragma once

#include <deque>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "model/block_pool.h"

namespace qwench {

/// A sequence's share of one forward pass: its next `rows` pending tokens.
struct ScheduledRows {
  Sequence* sequence;
  int rows;

  bool draws() const { return rows == sequence->pending(); }  // the pass ends with logits for the next token
};

/// Continuous batching: which sequences run in the next forward pass, and with how many tokens. Sequences
/// whose next token is due go first, then prompts in chunks, oldest first, up to a budget of rows; waiting
/// ones join, first come first served, while blocks last. When blocks run out the sequence that joined last
/// gives its blocks back and is computed again later. Used by the thread that owns the model; sequences
/// belong to the caller.
class Scheduler {
 public:
  Scheduler(BlockPool& pool, int max_batch, int max_batch_tokens);

  /// Takes a sequence into the queue. A lone sequence of its final length must fit the pool.
  void add(Sequence& sequence);
  /// The next pass; empty only when nothing is left. Valid until the next call.
  std::span<const ScheduledRows> schedule();
  /// Counts the scheduled rows as computed.
  void commit(std::span<const ScheduledRows> rows);
  /// Forgets a sequence, queued or running, and frees its blocks.
  void remove(Sequence& sequence);

  bool empty() const { return waiting_.empty() && running_.empty(); }
  int preemptions() const { return preemptions_; }

 private:
  bool reserve(Sequence& sequence,
               int positions);  // preempts later sequences if it must; false: it was preempted itself
  void preempt_last();
  void release_blocks(Sequence& sequence);
  void admit();

  BlockPool& pool_;
  const int max_batch_;
  const int max_batch_tokens_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // in order of joining
  std::vector<ScheduledRows> scheduled_;
  int preemptions_ = 0;
};

}  // namespace qwench
