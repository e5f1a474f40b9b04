#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/completion_sink.h"
#include "qwench/stream.h"

namespace qwench {

/// What the engine's thread and the reader of a Stream share. Thread-safe.
class StreamState final : public CompletionSink {
 public:
  StreamState(uint64_t id, int completions, bool has_text);

  void token(int index, TokenId id, const std::string& text, const TokenLogprob* logprob) override;
  void end(int index, const std::string& tail, Result result) override;
  void flush() override;
  bool cancelled() const override { return cancelled_.load(std::memory_order_relaxed); }

  // For the reader; see Stream.
  uint64_t id() const { return id_; }
  int completions() const { return static_cast<int>(partial_.size()); }
  std::optional<StreamDelta> next();
  std::optional<StreamDelta> next(std::chrono::nanoseconds timeout);
  bool finished() const;
  void on_ready(std::function<void()> notify);
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  Result result(int index);

 private:
  bool all_ended() const { return ended_ == static_cast<int>(partial_.size()); }
  std::optional<StreamDelta> take();

  const uint64_t id_;
  const bool has_text_;
  std::atomic<bool> cancelled_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StreamDelta> ready_;
  std::vector<StreamDelta> partial_;  // [completions]: tokens that have not released text yet
  std::vector<Result> results_;       // [completions]
  int ended_ = 0;
  bool announced_ = false;  // the reader knows that there is something to take

  // Held while the reader's function runs, and recursive because that may replace or end itself.
  std::recursive_mutex notify_mutex_;
  std::shared_ptr<const std::function<void()>> notify_;
};

}  // namespace qwench
