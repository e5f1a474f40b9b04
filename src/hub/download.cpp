#include "hub/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "checkpoint/printable.h"
#include "hub/digest.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kProgress = uint64_t{1} << 20;  // bytes after which a transfer counts as going forward

fs::path unfinished(const fs::path& target) { return target.string() + ".incomplete"; }

/// The content sent is not the file that was promised.
class WrongBytes : public Error {
 public:
  explicit WrongBytes(const std::string& message) : Error(ErrorKind::malformed, message) {}
};

class UnfinishedFile final : public BodySink {
 public:
  UnfinishedFile(fs::path file, const Blob& blob, std::string name, const DownloadContext& context)
      : file_(std::move(file)), blob_(blob), name_(std::move(name)), context_(context) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor_ < 0) fail("be written", errno);
    try {
      start_digest();
      take_what_is_there();
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  ~UnfinishedFile() override { ::close(descriptor_); }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  uint64_t size() const { return size_; }

  void begin(const Response& head) override {
    if (head.status == 206) {
      check_range(head.header("content-range"));
      return;
    }
    if (size_ > 0) begin_anew();  // the server ignores Range
    const std::string length = head.header("content-length");
    if (!length.empty() && length != std::to_string(blob_.size))
      throw WrongBytes(
          fmt::format("{}: the server sends {} bytes; expected {}", name_, printable(length), blob_.size));
  }

  void write(std::string_view bytes) override {
    if (bytes.size() > blob_.size - size_)
      throw WrongBytes(fmt::format("{}: the server sends more than its {} bytes", name_, blob_.size));
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const ssize_t written = ::pwrite(descriptor_, rest.data(), rest.size(), static_cast<off_t>(size_));
      if (written < 0) {
        if (errno == EINTR) continue;
        fail("be written", errno);
      }
      take(rest.substr(0, static_cast<size_t>(written)));
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }

  void begin_anew() {
    if (::ftruncate(descriptor_, 0) != 0) fail("be written", errno);
    context_.received -= static_cast<int64_t>(size_);
    size_ = 0;
    start_digest();
  }

  /// The file is whole: whether its checksum is right. To be called once, or again after begin_anew.
  bool is_right() {
    if (!digest_) return true;
    return digest_->finish() == (blob_.sha256.empty() ? blob_.git_sha1 : blob_.sha256);
  }

  void keep_as(const fs::path& target) {
    if (::fdatasync(descriptor_) != 0) fail("be written", errno);
    std::error_code error;
    fs::rename(file_, target, error);
    if (error) fail("be renamed", error.value());
  }

 private:
  void start_digest() {
    if (!blob_.sha256.empty()) {
      digest_.emplace(Digest::sha256());
    } else if (!blob_.git_sha1.empty()) {
      digest_.emplace(Digest::git_sha1(blob_.size));
    }
  }

  void take(std::string_view bytes) {
    if (digest_) digest_->update(bytes);
    size_ += bytes.size();
    context_.received += static_cast<int64_t>(bytes.size());
  }

  void take_what_is_there() {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) fail("be read", errno);
    if (static_cast<uint64_t>(info.st_size) > blob_.size) return begin_anew();
    std::vector<char> buffer(size_t{1} << 20);
    while (size_ < static_cast<uint64_t>(info.st_size)) {
      if (context_.stop.stop_requested()) throw Stopped{};
      const ssize_t count = ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(size_));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail("be read", count < 0 ? errno : EIO);
      take(std::string_view(buffer.data(), static_cast<size_t>(count)));
    }
  }

  // "bytes 100-199/200"
  void check_range(const std::string& range) const {
    const std::string expected = fmt::format("bytes {}-", size_);
    const size_t slash = range.find('/');
    const std::string total = slash == std::string::npos ? "" : range.substr(slash + 1);
    if (!range.starts_with(expected) || (total != "*" && total != std::to_string(blob_.size))) {
      throw WrongBytes(fmt::format("{}: the server sends {}; expected {}{}/{}", name_, printable(range),
                                   expected, blob_.size - 1, blob_.size));
    }
  }

  [[noreturn]] void fail(const char* what, int code) const {
    if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
      throw Error(
          ErrorKind::io,
          fmt::format(
              "{}: {} after {} of {} bytes; make room at {}, or set HF_HUB_CACHE to a larger disk, and "
              "pull again: what has been fetched is kept",
              name_, code == EFBIG ? "the file may not grow further" : "the disk is full", size_, blob_.size,
              file_.parent_path().string()));
    }
    throw Error(ErrorKind::io, fmt::format("{}: cannot {}: {}", file_.string(), what, std::strerror(code)));
  }

  fs::path file_;
  const Blob& blob_;
  std::string name_;
  const DownloadContext& context_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::optional<Digest> digest_;
};

// Until the file is whole. Throws WrongBytes where it cannot become right.
void fetch_rest(const DownloadContext& context, const std::string& url, const Blob& blob,
                const std::string& path, UnfinishedFile& file) {
  Retry retry(context.stop, context.notice);
  while (file.size() < blob.size) {
    const uint64_t before = file.size();
    Response response = context.client.get(url, before, file);
    if (file.size() >= before + kProgress) retry.progressed();
    const bool success = response.status == 200 || response.status == 206;
    if (response.broken.empty() && success && file.size() < blob.size)
      response.broken = fmt::format("the transfer ended after {} of {} bytes", file.size(), blob.size);
    if (response.status == 416) {  // nothing follows what is here: it is not this file's beginning
      file.begin_anew();
      response.broken = "the server refuses to go on from there";
    }
    if (response.broken.empty() && success) return;
    if (!response.is_transient() || !retry.wait(path, response)) context.remote.refuse(response, path);
  }
}

}  // namespace

void download(const DownloadContext& context, const std::string& url, const Blob& blob,
              const std::string& path, const fs::path& target) {
  UnfinishedFile file(unfinished(target), blob, path, context);
  try {
    for (int attempt = 0; attempt < 2; ++attempt) {
      fetch_rest(context, url, blob, path, file);
      if (file.is_right()) return file.keep_as(target);
      file.begin_anew();
      if (attempt == 0) context.notice(fmt::format("{}: its checksum is wrong; fetching it anew", path));
    }
    throw WrongBytes(fmt::format("{}: what {} sends does not have the checksum {}; it was thrown away", path,
                                 context.remote.endpoint(),
                                 blob.sha256.empty() ? blob.git_sha1 : blob.sha256));
  } catch (const WrongBytes&) {
    file.begin_anew();
    ::unlink(unfinished(target).c_str());
    throw;
  }
}

uint64_t unfinished_bytes(const fs::path& target) {
  std::error_code error;
  const uintmax_t size = fs::file_size(unfinished(target), error);
  return error ? 0 : size;
}

}  // namespace qwench::hub
