#pragma once

#include <filesystem>
#include <optional>
#include <utility>

namespace qwench::hub {

/// An exclusive flock on a file, as Python's filelock takes it, so that both keep out of each other's way.
/// Held until the object goes, or its process does; it also holds off other threads of this process.
class FileLock {
 public:
  /// Makes the file and its folder. Empty when another holds the lock. Throws Error (io).
  static std::optional<FileLock> try_acquire(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace qwench::hub
