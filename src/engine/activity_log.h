#pragma once

#include <atomic>
#include <deque>
#include <span>
#include <string>

#include "engine/scheduler.h"
#include "model/block_pool.h"
#include "qwench/activity.h"

namespace qwench {

/// Keeps what Engine::activity() tells. Recording belongs to the engine's thread; the picture of the blocks
/// is made only after somebody asked, as it counts all of them.
class ActivityLog {
 public:
  explicit ActivityLog(int blocks);

  // Of the engine's thread, outside the lock.
  /// Before the pass's rows are committed.
  static PassRecord describe(std::span<const ScheduledRows> parts, int64_t number);
  /// Whether somebody has asked since the last picture.
  bool wanted() const { return wanted_; }
  void draw(const BlockPool& blocks);

  // Under the caller's lock.
  void add(const PassRecord& pass);
  void show();  ///< what was drawn
  EngineActivity activity() const;

  void ask() { wanted_ = true; }  ///< from any thread

 private:
  int blocks_per_cell_;
  std::atomic<bool> wanted_{false};
  std::string drawn_;
  int drawn_shared_ = 0;
  std::string shown_;
  int shown_shared_ = 0;
  std::deque<PassRecord> passes_;
};

}  // namespace qwench
