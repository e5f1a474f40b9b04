#include "hub/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

// Whoever held the lock may have removed the file before we got it.
bool is_still_there(int descriptor, const fs::path& path) {
  struct stat locked {};
  struct stat named {};
  return ::fstat(descriptor, &locked) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

[[noreturn]] void fail(const fs::path& path, int code) {
  throw Error(ErrorKind::io, fmt::format("{}: cannot be locked: {}", path.string(), std::strerror(code)));
}

}  // namespace

std::optional<FileLock> FileLock::try_acquire(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) fail(path, error.value());
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0664);
    if (descriptor < 0) fail(path, errno);
    FileLock lock(descriptor);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (errno == EINTR) continue;
      fail(path, errno);
    }
    if (is_still_there(descriptor, path)) return lock;
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace qwench::hub
