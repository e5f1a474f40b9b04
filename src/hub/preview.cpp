#include "hub/preview.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "checkpoint/gguf.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSmallFile = size_t{4} << 20;

// Makes a folder that only this user can read.
fs::path make_folder() {
  std::string name = (fs::temp_directory_path() / "qwench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be made: {}", name, std::strerror(errno)));
  return name;
}

/// Ends an exchange that has brought what was wanted.
struct Enough {};

/// Writes what arrives to a file until it holds the header of a file of weights.
class HeaderSink final : public BodySink {
 public:
  HeaderSink(fs::path file, uint64_t size) : path_(std::move(file)), size_(size) {
    stream_.open(path_, std::ios::binary);
  }

  void begin(const Response&) override {
    if (received_ > 0)
      throw Error(ErrorKind::io,
                  fmt::format("{}: its beginning cannot be fetched", path_.filename().string()));
  }

  void write(std::string_view bytes) override {
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (received_ < sizeof(length_)) {
      const size_t part = std::min(bytes.size(), sizeof(length_) - static_cast<size_t>(received_));
      std::memcpy(length_ + received_, bytes.data(), part);
    }
    received_ += bytes.size();
    if (is_whole()) throw Enough{};
    if (received_ > Preview::kMaxHeader || received_ >= size_)
      throw Error(ErrorKind::malformed, fmt::format("{}: its header is too long", path_.filename().string()));
  }

  // The rest becomes a hole.
  void finish() {
    stream_.close();
    std::error_code error;
    fs::resize_file(path_, size_, error);
    if (error) throw Error(ErrorKind::io, fmt::format("{}: {}", path_.string(), error.message()));
  }

 private:
  bool is_whole() {
    if (path_.extension() != ".gguf") {
      if (received_ < sizeof(length_)) return false;
      uint64_t length = 0;
      std::memcpy(&length, length_, sizeof(length));
      return length < Preview::kMaxHeader && received_ >= length + sizeof(length_);
    }
    if (received_ < next_try_) return false;  // a GGUF file does not say how long its header is
    next_try_ = received_ * 2;
    finish();
    try {
      GgufFile::open(path_);
      return true;
    } catch (const Error&) {
      fs::resize_file(path_, received_);
      stream_.open(path_, std::ios::binary | std::ios::app);
      return false;
    }
  }

  fs::path path_;
  uint64_t size_;
  std::ofstream stream_;
  uint64_t received_ = 0;
  uint64_t next_try_ = uint64_t{1} << 20;
  char length_[8] = {};
};

}  // namespace

Preview::Preview(HttpClient& client, const Remote& remote, const std::string& commit,
                 const Selection& selection, const std::vector<Blob>& blobs)
    : folder_(make_folder()), model_(selection.gguf.empty() ? folder_ : folder_ / selection.gguf) {
  try {
    for (size_t i = 0; i < blobs.size(); ++i) {
      const std::string& path = selection.files[i].path;
      const fs::path target = folder_ / path;
      const std::string url = remote.file_url(commit, path);
      fs::create_directories(target.parent_path());
      if (is_weight_file(path)) {
        HeaderSink sink(target, blobs[i].size);
        Response response;
        try {
          response = client.get(url, 0, sink);
        } catch (const Enough&) {
          response.status = 200;
        }
        if (response.status != 200) remote.refuse(response, path);
        sink.finish();
      } else if (path.ends_with(".json") && blobs[i].size <= kMaxSmallFile) {
        const Response response = client.get(url, kMaxSmallFile);
        if (response.status != 200 || !response.broken.empty()) remote.refuse(response, path);
        std::ofstream(target, std::ios::binary)
            .write(response.body.data(), static_cast<std::streamsize>(response.body.size()));
      } else {
        std::ofstream(target, std::ios::binary).close();
        fs::resize_file(target, blobs[i].size);
      }
    }
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw Error(ErrorKind::io, error.what());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

Preview::~Preview() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace qwench::hub
