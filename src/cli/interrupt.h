#pragma once

#include <stop_token>

namespace qwench::cli {

/// While it lives, Ctrl-C asks what holds token() to stop instead of ending the program. One at a time.
class Interrupt {
 public:
  /// What a second Ctrl-C does.
  enum class Second { ends_program, asks_again };

  explicit Interrupt(Second second);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool happened() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
};

inline constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells have it

}  // namespace qwench::cli
