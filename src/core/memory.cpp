#include "core/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace qwench {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// A file that holds one number; absent, unreadable or "max" is no limit.
uint64_t read_number(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

/// "MemAvailable:  123 kB" of a file of such lines; 0 when it is not there.
uint64_t kilobytes_of(const char* path, std::string_view wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(wanted)) return std::strtoull(line.c_str() + wanted.size(), nullptr, 10);
  }
  return 0;
}

uint64_t machine_available() {
  const uint64_t kilobytes = kilobytes_of("/proc/meminfo", "MemAvailable:");
  return kilobytes > 0 ? kilobytes * 1024 : kUnlimited;
}

uint64_t cgroup_available() {
  struct Files {
    const char* limit;
    const char* usage;
  };
  for (const Files files : {Files{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
                            Files{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                  "/sys/fs/cgroup/memory/memory.usage_in_bytes"}}) {
    const uint64_t limit = read_number(files.limit, kUnlimited);
    if (limit == kUnlimited) continue;
    const uint64_t usage = read_number(files.usage, 0);
    return limit > usage ? limit - usage : 0;
  }
  return kUnlimited;
}

}  // namespace

uint64_t available_memory() { return std::min(machine_available(), cgroup_available()); }

uint64_t peak_memory() {
  // Not getrusage's: that counts what the parent had when it started this process.
  if (const uint64_t peak = kilobytes_of("/proc/self/status", "VmHWM:")) return peak * 1024;
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace qwench
