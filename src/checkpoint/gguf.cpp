#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include <cstring>

#include "checkpoint/gguf_reader.h"
#include "checkpoint/printable.h"
#include "core/mapped_file.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr int kMaxSplits = 10000;

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// One element of any integer type; empty when the type is not one, or the value is above INT64_MAX.
std::optional<int64_t> integer_at(GgufType type, const std::byte* bytes) {
  switch (type) {
    case GgufType::u8:
      return load<uint8_t>(bytes);
    case GgufType::i8:
      return load<int8_t>(bytes);
    case GgufType::u16:
      return load<uint16_t>(bytes);
    case GgufType::i16:
      return load<int16_t>(bytes);
    case GgufType::u32:
      return load<uint32_t>(bytes);
    case GgufType::i32:
      return load<int32_t>(bytes);
    case GgufType::i64:
      return load<int64_t>(bytes);
    case GgufType::u64: {
      const auto value = load<uint64_t>(bytes);
      return value <= INT64_MAX ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::string_view string_at(const std::byte*& bytes) {
  const auto length = load<uint64_t>(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 8, length);
  bytes += 8 + length;
  return text;
}

/// NAME-00002-of-00003.gguf
struct SplitName {
  std::string stem;  // NAME
  int number;        // from 1
  int count;
};

std::optional<SplitName> split_name(const std::string& file) {
  constexpr std::string_view kPattern = "-ddddd-of-ddddd.gguf";
  if (file.size() <= kPattern.size()) return std::nullopt;
  const size_t start = file.size() - kPattern.size();
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const char c = file[start + i];
    if (kPattern[i] == 'd' ? (c < '0' || c > '9') : c != kPattern[i]) return std::nullopt;
  }
  return SplitName{file.substr(0, start), std::stoi(file.substr(start + 1, 5)),
                   std::stoi(file.substr(start + 10, 5))};
}

int64_t split_field(const GgufContent& content, std::string_view key, const std::string& what) {
  for (const auto& [found, value] : content.values) {
    if (found != key || value.is_array) continue;
    if (const auto number = integer_at(value.type, value.bytes.data())) return *number;
  }
  throw Error(ErrorKind::malformed,
              fmt::format("{}: {} is missing or no whole number, in a file named as a part of a split", what,
                          printable(key)));
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufFile file;
  file.what_ = path.string();
  const auto split = split_name(path.filename().string());
  if (split && split->count > 1) {
    if (split->number < 1 || split->number > split->count || split->count > kMaxSplits) {
      throw Error(ErrorKind::malformed,
                  fmt::format("{}: the name says part {} of {}", file.what_, split->number, split->count));
    }
    for (int i = 1; i <= split->count; ++i) {
      file.paths_.push_back(path.parent_path() /
                            fmt::format("{}-{:05d}-of-{:05d}.gguf", split->stem, i, split->count));
      if (!is_there(file.paths_.back())) {
        throw Error(ErrorKind::not_found,
                    fmt::format("{}: the model is split in {} files, and this one is not there",
                                file.paths_.back().string(), split->count));
      }
    }
  } else {
    file.paths_.push_back(path);
  }
  int64_t promised = -1;
  for (size_t i = 0; i < file.paths_.size(); ++i) {
    const std::string what = file.paths_[i].string();
    file.files_.push_back(MappedFile::open(file.paths_[i]));
    GgufContent content = read_gguf(file.files_.back().bytes(), what);
    if (file.paths_.size() > 1) {
      const int64_t number = split_field(content, "split.no", what);
      const int64_t count = split_field(content, "split.count", what);
      if (number != static_cast<int64_t>(i) || count != static_cast<int64_t>(file.paths_.size())) {
        throw Error(ErrorKind::malformed,
                    fmt::format("{}: the metadata says part {} of {}, the name part {} of {}", what,
                                number + 1, count, i + 1, file.paths_.size()));
      }
      if (i == 0) promised = split_field(content, "split.tensors.count", what);
    }
    if (i == 0) {
      file.version_ = content.version;
      for (const auto& [key, value] : content.values) {
        file.keys_.push_back(key);
        file.values_.emplace(key, value);
      }
    }
    for (GgufTensor& tensor : content.tensors) file.tensors_.push_back(std::move(tensor));
  }
  if (promised >= 0 && promised != static_cast<int64_t>(file.tensors_.size())) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: the files of the split hold {} tensors, but split.tensors.count says {}",
                            file.what_, file.tensors_.size(), promised));
  }
  if (const auto count = file.integer("split.count"); file.paths_.size() == 1 && count && *count > 1) {
    throw Error(
        ErrorKind::not_found,
        fmt::format(
            "{}: this is one of {} files of a split model; they must lie in one folder under names like "
            "NAME-00001-of-{:05d}.gguf",
            file.what_, *count, *count));
  }
  file.index_tensors();
  return file;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& what) {
  GgufFile file;
  file.what_ = what;
  GgufContent content = read_gguf(bytes, what);
  file.version_ = content.version;
  for (const auto& [key, value] : content.values) {
    file.keys_.push_back(key);
    file.values_.emplace(key, value);
  }
  file.tensors_ = std::move(content.tensors);
  file.index_tensors();
  return file;
}

void GgufFile::index_tensors() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensor_by_name_.emplace(tensors_[i].name, i).second) {
      throw Error(ErrorKind::malformed, fmt::format("{}: tensor {} is in two files of the split", what_,
                                                    printable(tensors_[i].name)));
    }
  }
}

const GgufTensor* GgufFile::tensor(std::string_view tensor_name) const {
  const auto found = tensor_by_name_.find(tensor_name);
  return found == tensor_by_name_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void GgufFile::wrong_type(std::string_view key, const GgufValue& value, std::string_view wanted) const {
  throw Error(ErrorKind::malformed,
              fmt::format("{}: {} is {}{}, expected {}", what_, key,
                          value.is_array ? "an array of " : "of type ", name(value.type), wanted));
}

const GgufValue* GgufFile::find_scalar(std::string_view key, std::string_view wanted) const {
  const GgufValue* value = find(key);
  if (value != nullptr && value->is_array) wrong_type(key, *value, wanted);
  return value;
}

const GgufValue* GgufFile::find_array(std::string_view key, std::string_view wanted) const {
  const GgufValue* value = find(key);
  if (value != nullptr && !value->is_array) wrong_type(key, *value, wanted);
  return value;
}

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  const GgufValue* value = find_scalar(key, "a string");
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::string) wrong_type(key, *value, "a string");
  const std::byte* bytes = value->bytes.data();
  return string_at(bytes);
}

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find_scalar(key, "a whole number");
  if (value == nullptr) return std::nullopt;
  const auto result = integer_at(value->type, value->bytes.data());
  if (!result) {
    if (value->type == GgufType::u64) {
      throw Error(ErrorKind::malformed, fmt::format("{}: {} is {}, which is out of range", what_, key,
                                                    load<uint64_t>(value->bytes.data())));
    }
    wrong_type(key, *value, "a whole number");
  }
  return result;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find_scalar(key, "a number");
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::f32) return load<float>(value->bytes.data());
  if (value->type == GgufType::f64) return load<double>(value->bytes.data());
  if (value->type == GgufType::string || value->type == GgufType::boolean)
    wrong_type(key, *value, "a number");
  return static_cast<double>(*integer(key));
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = find_scalar(key, "a bool");
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean) wrong_type(key, *value, "a bool");
  return value->bytes[0] != std::byte{0};
}

std::optional<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  const GgufValue* value = find_array(key, "an array of strings");
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::string) wrong_type(key, *value, "an array of strings");
  std::vector<std::string_view> result(value->count);
  const std::byte* bytes = value->bytes.data();
  for (std::string_view& text : result) text = string_at(bytes);
  return result;
}

std::optional<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  const GgufValue* value = find_array(key, "an array of whole numbers");
  if (value == nullptr) return std::nullopt;
  const size_t size = gguf_value_bytes(value->type);
  std::vector<int64_t> result(value->count);
  for (size_t i = 0; i < result.size(); ++i) {
    const auto element = size > 0 ? integer_at(value->type, value->bytes.data() + i * size) : std::nullopt;
    if (!element) wrong_type(key, *value, "an array of whole numbers in range");
    result[i] = *element;
  }
  return result;
}

std::optional<std::vector<float>> GgufFile::floats(std::string_view key) const {
  const GgufValue* value = find_array(key, "an array of float32");
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::f32) wrong_type(key, *value, "an array of float32");
  std::vector<float> result(value->count);
  if (!result.empty()) std::memcpy(result.data(), value->bytes.data(), value->bytes.size());
  return result;
}

}  // namespace qwench
