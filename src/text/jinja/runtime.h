#pragma once

#include <chrono>
#include <string>

#include "text/jinja/limits.h"
#include "text/jinja/value.h"

namespace qwench {

/// Local wall-clock time, as templates see it through strftime_now.
using LocalTime = std::chrono::local_time<std::chrono::microseconds>;

}  // namespace qwench

namespace qwench::jinja {

/// What every operation of one rendering shares: its heap, its budgets, its clock, and where it is in the
/// template. Used by one thread.
class Runtime {
 public:
  Runtime(const RenderLimits& limits, LocalTime time) : heap(limits.max_memory), now(time), limits_(limits) {}

  /// Spends steps of the budget.
  void step(uint64_t count = 1) {
    if (steps_ + count > limits_.max_steps) fail_steps();
    steps_ += count;
  }
  /// Spends steps in proportion to bytes moved or looked at.
  void work(size_t bytes) { step(bytes / 64); }
  /// Fails when a string would be longer than allowed.
  void check_size(size_t bytes) const {
    if (bytes > limits_.max_output) fail_size();
  }
  const RenderLimits& limits() const { return limits_; }

  /// Held while an operation recurses into another; bounds the native stack.
  class Nesting {
   public:
    explicit Nesting(Runtime& rt) : rt_(rt) {
      if (++rt_.nesting_ > kMaxNesting) rt_.fail_nesting();
    }
    ~Nesting() { --rt_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Runtime& rt_;
  };

  Heap heap;
  const LocalTime now;
  bool autoescape = false;
  Position position;  ///< of the expression or statement that is being executed

 private:
  static constexpr int kMaxNesting = 2500;

  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_size() const;
  [[noreturn]] void fail_nesting();

  RenderLimits limits_;
  uint64_t steps_ = 0;
  int nesting_ = 0;
};

/// Does any part of it come from the input?
inline bool touches_input(const Value& value) {
  return value.from_input() || (value.is_string() && value.as<String>().text.has_input());
}

}  // namespace qwench::jinja
