#include "core/log.h"

#include <atomic>
#include <cstdio>

namespace qwench {
namespace {
std::atomic<LogLevel> lowest_level{LogLevel::warning};
}

void set_log_level(LogLevel lowest) { lowest_level = lowest; }

void log(LogLevel level, const std::string& message) {
  if (level < lowest_level) return;
  std::fprintf(stderr, "qwench: %s%s\n", level == LogLevel::warning ? "warning: " : "", message.c_str());
}

}  // namespace qwench
