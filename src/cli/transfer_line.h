#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace qwench::cli {

/// The line that a transfer shows while it goes on: "1.20 GB of 3.10 GB, 39 %, 31.2 MB/s, 1:02 left".
class TransferLine {
 public:
  /// `seconds` is any clock that goes forward. The speed is that of the last seconds.
  std::string text(uint64_t received, uint64_t total, double seconds);

 private:
  std::deque<std::pair<double, uint64_t>> samples_;  // (seconds, received)
};

/// "0:07", "12:34", "3:05:00"
std::string duration(double seconds);
/// "512 bytes", "18.2 kB", "93.1 MB", "1.50 GB"
std::string amount(uint64_t bytes);

}  // namespace qwench::cli
