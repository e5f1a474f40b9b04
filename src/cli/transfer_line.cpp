#include "cli/transfer_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace qwench::cli {
namespace {

constexpr double kWindow = 5.0;  // seconds over which the speed is taken

}  // namespace

std::string TransferLine::text(uint64_t received, uint64_t total, double seconds) {
  if (!samples_.empty() && received < samples_.back().second) samples_.clear();  // a file was begun anew
  samples_.emplace_back(seconds, received);
  while (samples_.size() > 2 && seconds - samples_[1].first > kWindow) samples_.pop_front();

  std::string line = fmt::format("{} of {}", amount(received), amount(total));
  if (total > 0) {
    line += fmt::format(", {:.0f} %",
                        std::floor(100.0 * static_cast<double>(received) / static_cast<double>(total)));
  }
  const auto& [then, before] = samples_.front();
  if (seconds - then < 0.5) return line;
  const double speed = static_cast<double>(received - before) / (seconds - then);
  line += fmt::format(", {}/s", amount(static_cast<uint64_t>(speed)));
  if (speed >= 1 && total > received)
    line += fmt::format(", {} left", duration(static_cast<double>(total - received) / speed));
  return line;
}

std::string duration(double seconds) {
  const auto whole = static_cast<uint64_t>(std::clamp(std::ceil(seconds), 0.0, 3.6e6));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string amount(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", number / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", number / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.1f} kB", number / 1e3);
  return fmt::format("{} bytes", bytes);
}

}  // namespace qwench::cli
