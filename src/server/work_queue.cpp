#include "server/work_queue.h"

#include <utility>

namespace qwench::server {

WorkQueue::WorkQueue(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkQueue::~WorkQueue() { close(); }

void WorkQueue::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void WorkQueue::close() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    std::swap(dropped, tasks_);
  }
  wake_.notify_all();
  dropped.clear();  // not under the lock: what a task holds may post when it goes
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkQueue::run() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (closed_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace qwench::server
