#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace qwench::server {

/// Threads that do what is posted, oldest first; with one thread, one after another. Tasks must not throw.
class WorkQueue {
 public:
  explicit WorkQueue(int threads);
  /// Drops what has not begun and waits for what has.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// From any thread; dropped once the queue is closed.
  void post(std::function<void()> task);
  /// Drops what has not begun, takes nothing more, and waits for what has begun.
  void close();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qwench::server
