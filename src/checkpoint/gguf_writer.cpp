#include "checkpoint/gguf_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "checkpoint/ggml_types.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr uint64_t kAlignment = 32;  // the format's default
static_assert(std::endian::native == std::endian::little);

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append_text(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out += text;
}

/// A file that is removed unless it is kept.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail("cannot be written");
  }
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    std::error_code ignored;
    if (!kept_) std::filesystem::remove(path_, ignored);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(descriptor_, from, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot be written");
      from += written;
      bytes -= static_cast<size_t>(written);
    }
  }

  void keep_as(const std::filesystem::path& name) {
    if (::fsync(descriptor_) != 0 || ::close(std::exchange(descriptor_, -1)) != 0) fail("cannot be written");
    std::error_code error;
    std::filesystem::rename(path_, name, error);
    if (error) throw Error(ErrorKind::io, fmt::format("{}: {}", name.string(), error.message()));
    kept_ = true;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(ErrorKind::io, fmt::format("{} {}: {}", path_.string(), what, std::strerror(errno)));
  }

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool kept_ = false;
};

uint32_t ggml_number(DType dtype) {
  uint32_t number = 0;
  while (ggml_type(number) == nullptr || ggml_type(number)->dtype != dtype) ++number;  // every DType is one
  return number;
}

}  // namespace

void GgufWriter::begin_value(std::string_view key, GgufType type) {
  ++values_;
  append_text(metadata_, key);
  append(metadata_, static_cast<uint32_t>(type));
}

void GgufWriter::add_text(std::string_view key, std::string_view value) {
  begin_value(key, GgufType::string);
  append_text(metadata_, value);
}

void GgufWriter::add_count(std::string_view key, uint32_t value) {
  begin_value(key, GgufType::u32);
  append(metadata_, value);
}

void GgufWriter::add_number(std::string_view key, float value) {
  begin_value(key, GgufType::f32);
  append(metadata_, value);
}

void GgufWriter::add_flag(std::string_view key, bool value) {
  begin_value(key, GgufType::boolean);
  append<uint8_t>(metadata_, value ? 1 : 0);
}

void GgufWriter::add_texts(std::string_view key, std::span<const std::string> values) {
  begin_value(key, GgufType::array);
  append(metadata_, static_cast<uint32_t>(GgufType::string));
  append<uint64_t>(metadata_, values.size());
  for (const std::string& value : values) append_text(metadata_, value);
}

void GgufWriter::add_integers(std::string_view key, std::span<const int32_t> values) {
  begin_value(key, GgufType::array);
  append(metadata_, static_cast<uint32_t>(GgufType::i32));
  append<uint64_t>(metadata_, values.size());
  for (const int32_t value : values) append(metadata_, value);
}

void GgufWriter::add_copy(std::string_view key, const GgufValue& value) {
  begin_value(key, value.is_array ? GgufType::array : value.type);
  if (value.is_array) {
    append(metadata_, static_cast<uint32_t>(value.type));
    append(metadata_, value.count);
  }
  metadata_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufWriter::add_tensor(std::string name, DType dtype, std::vector<int64_t> shape) {
  uint64_t count = 1;
  for (const int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  tensors_.push_back({std::move(name), dtype, std::move(shape), bytes_of(dtype, count)});
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  append<uint32_t>(out, 3);
  append<uint64_t>(out, tensors_.size());
  append<uint64_t>(out, values_);
  out += metadata_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_text(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.size()));
    for (auto it = tensor.shape.rbegin(); it != tensor.shape.rend(); ++it)
      append(out, static_cast<uint64_t>(*it));
    append(out, ggml_number(tensor.dtype));
    append(out, offset);
    offset += aligned(tensor.bytes);
  }
  out.resize(aligned(out.size()), '\0');
  return out;
}

uint64_t GgufWriter::bytes() const {
  uint64_t bytes = header().size();
  for (const Tensor& tensor : tensors_) bytes += aligned(tensor.bytes);
  return bytes;
}

void GgufWriter::write(const std::filesystem::path& path, const Produce& produce) const {
  std::filesystem::path part = path;
  part += ".part";
  NewFile file(part);
  const std::string head = header();
  file.write(head.data(), head.size());
  constexpr char kZeros[kAlignment] = {};
  for (size_t i = 0; i < tensors_.size(); ++i) {
    uint64_t written = 0;
    produce(i, [&](std::span<const std::byte> bytes) {
      file.write(bytes.data(), bytes.size());
      written += bytes.size();
    });
    if (written != tensors_[i].bytes) {
      throw Error(ErrorKind::io, fmt::format("{}: {} bytes of the tensor {} were written, it has {}",
                                             path.string(), written, tensors_[i].name, tensors_[i].bytes));
    }
    file.write(kZeros, aligned(written) - written);
  }
  file.keep_as(path);
}

}  // namespace qwench
