#pragma once

#include <string>

namespace qwench::cli {

/// Gathers a message of several lines: lines between two `"""`, or lines that each end with a backslash but
/// for the last.
class MultiLine {
 public:
  /// Takes the next line; true when the message is complete. `goes_on`: the line is part of a paste and not
  /// the last.
  bool add(std::string line, bool goes_on = false);
  bool open() const { return started_; }
  /// The message, and a fresh start.
  std::string take();

 private:
  std::string text_;
  bool started_ = false;
  bool quoted_ = false;
};

}  // namespace qwench::cli
