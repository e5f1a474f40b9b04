#include "core/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/log.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace qwench {
namespace {

// About 20 us: longer than the gap between two operations of a layer, shorter than a person's patience with
// an idle program that burns a core.
constexpr int kSpins = 4000;
// Few enough to be of use where the cores are counted wrongly.
constexpr int kAlwaysAllowed = 8;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int cores_by_quota(int cores) {
  // cgroup v2: "max 100000" or "200000 100000"; v1: two files.
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return cores;
    return std::min(cores, static_cast<int>(std::atof(quota.c_str()) / period + 0.5));
  }
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = 0;
  if (v1_quota >> microseconds && v1_period >> period && microseconds > 0 && period > 0) {
    return std::min(cores, static_cast<int>(microseconds / period + 0.5));
  }
  return cores;
}

/// A worker that spins keeps its core from one that has work, where there are fewer cores than workers.
int spins_for(int threads) {
  static const int cores = available_cores();
  return threads > cores ? 0 : kSpins;
}

}  // namespace

int available_cores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cores = CPU_COUNT(&mask);
  return std::max(1, cores_by_quota(cores));
}

int thread_count(int wanted) {
  const int cores = available_cores();
  if (wanted <= 0) return cores;
  const int most = std::max(kAlwaysAllowed, cores);
  if (wanted <= most) return wanted;
  log_warning(
      fmt::format("{} threads were asked for, but this process may use {} core{}; it works with {} threads",
                  wanted, cores, cores == 1 ? "" : "s", most));
  return most;
}

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < std::max(1, threads); ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Task task, void* context) {
  if (workers_.empty()) {
    task(context, 0, 1);
    return;
  }
  task_ = task;
  context_ = context;
  remaining_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  task(context, 0, size());
  // Where others want the cores, one that spins for a worker keeps the worker from running: it sleeps after a
  // while.
  const int most = spins_for(size());
  int left = remaining_.load(std::memory_order_acquire);
  for (int spins = 0; left != 0; ++spins) {
    if (spins < most) {
      pause_briefly();
    } else {
      remaining_.wait(left, std::memory_order_acquire);
    }
    left = remaining_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work(int worker) {
  uint32_t seen = 0;
  while (true) {
    // The first call comes when the pool is complete: size() is not to be read before.
    const int most = seen == 0 ? kSpins : spins_for(size());
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen && spins < most; ++spins)
      pause_briefly();
    generation_.wait(seen, std::memory_order_acquire);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_) return;
    task_(context_, worker, size());
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) remaining_.notify_one();
  }
}

}  // namespace qwench
