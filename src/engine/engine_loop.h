#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/activity_log.h"
#include "engine/job.h"
#include "engine/loaded_model.h"
#include "engine/pass.h"
#include "engine/prefix_cache.h"
#include "engine/scheduler.h"
#include "model/block_pool.h"
#include "qwench/engine.h"

namespace qwench {

/// The thread that owns a model: takes submitted jobs, and runs pass after pass over what the scheduler
/// chooses until all have ended. Public functions are thread-safe.
class EngineLoop {
 public:
  EngineLoop(LoadedModel& model, const EngineOptions& options);
  ~EngineLoop();  ///< stop()
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  /// Takes all or none. Throws Error: shutting_down; busy where `bounded` and the queue is full.
  void submit(std::vector<std::unique_ptr<Job>> jobs, bool bounded);
  /// Runs `errand` on the loop's thread while no job runs, and waits for it; passes on what it throws. Throws
  /// Error (shutting_down).
  void run_alone(const std::function<void(BlockPool&)>& errand);

  EngineStats stats() const;
  EngineActivity activity();
  bool drain(std::optional<std::chrono::nanoseconds> timeout);
  void stop();

 private:
  struct Errand {
    const std::function<void(BlockPool&)>& run;
    std::exception_ptr error;
    bool done = false;
  };

  void main();
  void take(std::deque<std::unique_ptr<Job>> jobs);
  void end_unwanted();
  void pass();
  void fork(Job& job);
  /// After its device was lost. Throws Error.
  void load_again();
  void run(Errand& errand);
  void end_finished(Job& job);
  void end_all(FinishReason reason, const std::string& error = {});
  /// Tells the world what has happened: counts first, then what the sinks have got.
  void publish();

  LoadedModel& model_;
  BlockPool blocks_;
  PrefixCache prefixes_;
  Scheduler scheduler_;
  Pass pass_;
  const int most_unfinished_;

  // Of the loop's thread.
  std::vector<std::unique_ptr<Job>> jobs_;
  EngineStats counts_;
  bool device_lost_ = false;
  std::vector<PassRecord> passes_done_;  // since counts_ were published
  int ended_ = 0;                        // completions, since counts_ were published

  mutable std::mutex mutex_;
  std::condition_variable work_;  // the loop waits for it
  std::condition_variable done_;  // others wait for the loop
  std::deque<std::unique_ptr<Job>> inbox_;
  std::deque<Errand*> errands_;
  int unfinished_ = 0;  // completions submitted and not ended
  int64_t refused_ = 0;
  bool refusing_ = false;
  bool stopping_ = false;
  EngineStats published_;
  ActivityLog activity_;

  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace qwench
