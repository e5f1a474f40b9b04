#include "core/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "qwench/error.h"

namespace qwench {

MappedFile MappedFile::open(const std::filesystem::path& path) {
  // Non-blocking, as opening a pipe would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const ErrorKind kind = errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::io;
    throw Error(kind, fmt::format("{}: {}", path.string(), std::strerror(errno)));
  }
  MappedFile file;
  file.path_ = path;
  struct stat info {};
  int failure = 0;
  if (::fstat(fd, &info) != 0) {
    failure = errno;
  } else if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    throw Error(ErrorKind::not_found, fmt::format("{}: not a regular file", path.string()));
  } else if (info.st_size > 0) {
    file.size_ = static_cast<size_t>(info.st_size);
    void* address = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      failure = errno;
      file.size_ = 0;
    } else {
      file.data_ = static_cast<const std::byte*>(address);
    }
  }
  ::close(fd);
  if (failure != 0) {
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot be mapped: {}", path.string(), std::strerror(failure)));
  }
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { close(); }

void MappedFile::close() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

void explain_lost_files() noexcept {
  struct sigaction action {};
  action.sa_handler = [](int) {
    static constexpr char kSentence[] =
        "qwench: a model file was cut short, or its disk failed, while it was in use; run the command "
        "again\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSentence, sizeof(kSentence) - 1);
    ::_exit(1);
  };
  ::sigaction(SIGBUS, &action, nullptr);
}

void prefetch(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t aligned = begin / page * page;
  ::madvise(reinterpret_cast<void*>(aligned), bytes.size() + (begin - aligned), MADV_WILLNEED);
}

void release(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none)
    throw Error(ErrorKind::io, fmt::format("{}: {}", path.string(), error.message()));
  return std::filesystem::exists(status);
}

std::string read_text_file(const std::filesystem::path& path, size_t limit) {
  const MappedFile file = MappedFile::open(path);
  if (file.bytes().size() > limit) {
    throw Error(ErrorKind::malformed, fmt::format("{}: {} bytes, more than the {} such a file may have",
                                                  path.string(), file.bytes().size(), limit));
  }
  return std::string(file.text());
}

}  // namespace qwench
