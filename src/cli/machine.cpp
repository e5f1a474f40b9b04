#include "cli/machine.h"

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/json.h"
#include "core/mapped_file.h"
#include "core/thread_pool.h"
#include "core/user_folders.h"
#include "kernels/isa.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

namespace fs = std::filesystem;

// Of how the limits are measured: those of other versions are measured anew.
constexpr int kVersion = 2;

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 1);
  }
  return "";
}

Json read_cache(const fs::path& path) {
  try {
    Json cache = parse_json(read_text_file(path, size_t{1} << 20), path.string());
    if (cache.is_object() && cache.value("version", 0) == kVersion) return cache;
  } catch (const std::exception&) {
    // Absent or damaged: it is only a cache.
  }
  return {{"version", kVersion}};
}

/// Best effort: a folder that cannot be written to costs a second next time.
void write_cache(const fs::path& path, const Json& cache) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path aside = path.string() + "." + std::to_string(::getpid());
  std::ofstream(aside) << cache.dump(2) << '\n';
  fs::rename(aside, path, error);
}

}  // namespace

std::string machine_description() {
  std::string name = processor();
  name.erase(0, name.find_first_not_of(" \t"));
  std::string isa = current_isa();
  for (char& c : isa) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name.empty() ? isa : name + " (" + isa + ")";
}

MachineLimits machine_limits(int threads, bool fresh) {
  const int count = thread_count(threads);
  const fs::path path = cache_folder() / "machine.json";
  const std::string key = processor() + " | " + current_isa() + " | " + std::to_string(count);
  Json cache = read_cache(path);
  if (const auto found = cache.find(key); !fresh && found != cache.end() && found->is_object()) {
    const double read = found->value("read_gb_per_s", 0.0);
    const double flops = found->value("f32_gflop_per_s", 0.0);
    const double dots = found->value("int8_gop_per_s", -1.0);
    if (read > 0 && flops > 0 && dots >= 0) return {read, flops, dots};
  }
  ThreadPool pool(count);
  const MachineLimits limits = measure_machine(pool);
  cache[key] = {{"read_gb_per_s", limits.read_gb_per_s},
                {"f32_gflop_per_s", limits.f32_gflop_per_s},
                {"int8_gop_per_s", limits.int8_gop_per_s}};
  write_cache(path, cache);
  return limits;
}

}  // namespace qwench::cli
