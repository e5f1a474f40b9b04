#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace qwench {

/// Cores this process may use: its affinity mask, cut to the cgroup's CPU quota; at least 1.
int available_cores();

/// How many threads to work with where `wanted` were asked for; 0 stands for available_cores(). Threads
/// beyond the cores only wait for each other: more than 8 and than the cores are cut, with a warning.
int thread_count(int wanted);

/// A fixed set of workers that run one function together. `run` is called from one thread at a time (the
/// engine thread); the caller is worker 0. Workers spin briefly for the next call, and the caller for them,
/// then they sleep.
class ThreadPool {
 public:
  explicit ThreadPool(int threads = available_cores());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls task(context, worker, size()) on every worker and waits for all. Must not throw. Allocates
  /// nothing.
  using Task = void (*)(void* context, int worker, int workers);
  void run(Task task, void* context);

  /// The same for a callable f(worker, workers).
  template <typename F>
  void run(F&& f) {
    using Function = std::remove_reference_t<F>;
    run([](void* context, int worker, int workers) { (*static_cast<Function*>(context))(worker, workers); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

  /// Splits [0, count) into contiguous ranges, multiples of `grain` but for the last, and calls
  /// f(begin, end, worker) on each non-empty one.
  template <typename F>
  void parallel_for(int64_t count, int64_t grain, F&& f) {
    if (count <= 0) return;
    const int64_t pieces = (count + grain - 1) / grain;
    if (pieces == 1 || workers_.empty()) {
      f(int64_t{0}, count, 0);
      return;
    }
    run([&](int worker, int workers) {
      const int64_t begin = pieces * worker / workers * grain;
      const int64_t end = std::min(pieces * (worker + 1) / workers * grain, count);
      if (begin < end) f(begin, end, worker);
    });
  }

 private:
  void work(int worker);

  std::vector<std::thread> workers_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{0};  // bumped for each call; workers wait on it
  alignas(64) std::atomic<int> remaining_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace qwench
