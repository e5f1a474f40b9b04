#include "core/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace qwench {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// A file that holds one number; absent, unreadable or "max" is no limit.
uint64_t read_number(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

uint64_t machine_available() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  uint64_t kilobytes = 0;
  std::string unit;
  while (info >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    std::getline(info, unit);
  }
  return kUnlimited;
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
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace qwench
