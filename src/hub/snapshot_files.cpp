#include "hub/snapshot_files.h"

#include <algorithm>

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostEntries = 100'000;

bool starts_with(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

bool is_inside(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) return false;
  const fs::path real = fs::canonical(path, error);
  return !error && starts_with(real, real_root);
}

std::vector<SnapshotFile> snapshot_files(const fs::path& root, const fs::path& snapshot) {
  std::vector<SnapshotFile> files;
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error || !is_inside(root, snapshot)) return files;
  fs::recursive_directory_iterator entries(snapshot, error);
  for (; !error && entries != fs::recursive_directory_iterator() && files.size() < kMostEntries;
       entries.increment(error)) {
    std::error_code broken;
    const fs::path real = fs::canonical(entries->path(), broken);
    if (broken || !starts_with(real, real_root) || !fs::is_regular_file(real, broken)) continue;
    files.push_back({entries->path().lexically_relative(snapshot).generic_string(), entries->path(), real});
  }
  std::sort(files.begin(), files.end(),
            [](const SnapshotFile& a, const SnapshotFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> paths_of(const std::vector<SnapshotFile>& files) {
  std::vector<std::string> paths;
  paths.reserve(files.size());
  for (const SnapshotFile& file : files) paths.push_back(file.path);
  return paths;
}

}  // namespace qwench::hub
