#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "qwench/error.h"

namespace qwench {

inline std::filesystem::path test_data(const std::string& path) {
  return std::filesystem::path(QWENCH_TEST_DATA) / path;
}

inline Json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return Json::parse(in);
}

/// A folder of its own for a test, gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "qwench-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The message of the Error that `f` throws, and its kind; a test failure when it throws none.
template <typename F>
std::pair<std::string, ErrorKind> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return {error.what(), error.kind()};
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

template <typename T>
std::string packed(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// A safetensors file from its header and data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  return packed<uint64_t>(header.size()) + header + data;
}

/// A GGUF file built entry by entry.
class GgufBuilder {
 public:
  uint32_t version = 3;

  static std::string text(std::string_view s) { return packed<uint64_t>(s.size()) + std::string(s); }

  GgufBuilder& raw(std::string_view key, uint32_t type, const std::string& bytes) {
    values_.emplace_back(key, packed(type) + bytes);
    return *this;
  }
  GgufBuilder& u32(std::string_view key, uint32_t value) { return raw(key, 4, packed(value)); }
  GgufBuilder& f32(std::string_view key, float value) { return raw(key, 6, packed(value)); }
  GgufBuilder& string(std::string_view key, std::string_view value) { return raw(key, 8, text(value)); }
  GgufBuilder& remove(std::string_view key) {
    std::erase_if(values_, [&](const auto& v) { return v.first == key; });
    return *this;
  }
  /// `shape` outermost first, as everywhere here.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                      const std::string& bytes) {
    std::string info = text(name) + packed(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i > 0; --i) info += packed(shape[i - 1]);
    tensors_.push_back(info + packed(type) + packed<uint64_t>(data_.size()));
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    return *this;
  }
  GgufBuilder& f32_tensor(std::string_view name, const std::vector<uint64_t>& shape, float value = 0.0f) {
    uint64_t count = 1;
    for (const uint64_t d : shape) count *= d;
    std::string bytes;
    for (uint64_t i = 0; i < count; ++i) bytes += packed(value);
    return tensor(name, shape, 0, bytes);
  }
  std::string build() const {
    std::string out =
        "GGUF" + packed(version) + packed<uint64_t>(tensors_.size()) + packed<uint64_t>(values_.size());
    for (const auto& [key, value] : values_) out += text(key) + value;
    for (const std::string& info : tensors_) out += info;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
  std::vector<std::string> tensors_;
  std::string data_;
};

/// The metadata of a small model of one layer: 2 heads on 1 key/value head of 8 dimensions, hidden size 16.
inline GgufBuilder small_gguf(const std::string& architecture) {
  GgufBuilder builder;
  builder.string("general.architecture", architecture)
      .u32(architecture + ".context_length", 64)
      .u32(architecture + ".embedding_length", 16)
      .u32(architecture + ".block_count", 1)
      .u32(architecture + ".feed_forward_length", 24)
      .u32(architecture + ".attention.head_count", 2)
      .u32(architecture + ".attention.head_count_kv", 1)
      .f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f)
      .u32(architecture + ".vocab_size", 32);
  return builder;
}

}  // namespace qwench
