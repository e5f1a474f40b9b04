#include "server/json_log.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "server/api_error.h"

namespace qwench::server {
namespace {

constexpr size_t kMostLines = 10000;

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", std::string_view(text, length), since % 1000);
}

std::string make_line(const char* level, const char* event, const Json& fields) {
  Json line{{"time", now_text()}, {"level", level}, {"event", event}};
  for (const auto& [name, value] : fields.items()) line[name] = value;
  return to_line(line) + "\n";
}

}  // namespace

JsonLog::JsonLog(std::FILE* out) : out_(out), thread_([this] { run(); }) {}

JsonLog::~JsonLog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void JsonLog::write(const char* level, const char* event, const Json& fields) {
  std::string line = make_line(level, event, fields);
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMostLines) {
      ++dropped_;
      return;
    }
    lines_.push_back(std::move(line));
  }
  wake_.notify_one();
}

void JsonLog::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return ending_ || !lines_.empty(); });
    if (lines_.empty()) return;
    std::deque<std::string> lines;
    std::swap(lines, lines_);
    const size_t dropped = std::exchange(dropped_, 0);
    lock.unlock();
    if (dropped > 0) lines.push_back(make_line("warning", "log_lines_dropped", Json{{"count", dropped}}));
    for (const std::string& line : lines) std::fwrite(line.data(), 1, line.size(), out_);
    std::fflush(out_);
    lock.lock();
  }
}

}  // namespace qwench::server
