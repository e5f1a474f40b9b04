#include "hub/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace qwench::hub {
namespace {

constexpr int kTries = 5;
constexpr double kFirstWait = 0.5;  // seconds
constexpr double kLongestWait = 120;

}  // namespace

bool Retry::wait(const std::string& what, const Response& response) {
  if (++failures_ >= kTries) return false;
  const double seconds = response.retry_after().value_or(kFirstWait * (1 << (failures_ - 1)));
  if (seconds > kLongestWait) return false;
  notice_(fmt::format("{}: {}; trying again in {:.0f} s", what, reason_of(response), std::max(1.0, seconds)));
  sleep_for(seconds, stop_);
  return true;
}

void sleep_for(double seconds, const std::stop_token& stop) {
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  while (std::chrono::steady_clock::now() < end) {
    if (stop.stop_requested()) throw Stopped{};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string reason_of(const Response& response) {
  if (!response.broken.empty()) return response.broken;
  switch (response.status) {
    case 408:
      return "408 Request Timeout";
    case 429:
      return "429 Too Many Requests";
    case 500:
      return "500 Internal Server Error";
    case 502:
      return "502 Bad Gateway";
    case 503:
      return "503 Service Unavailable";
    case 504:
      return "504 Gateway Timeout";
    default:
      return fmt::format("HTTP status {}", response.status);
  }
}

}  // namespace qwench::hub
