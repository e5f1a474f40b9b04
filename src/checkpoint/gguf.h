#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/mapped_file.h"
#include "qwench/dtype.h"

namespace qwench {

/// The types of metadata values, with the numbers the file format gives them
/// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// A metadata value as it lies in the file; checked, not decoded.
struct GgufValue {
  GgufType type;  ///< for an array, that of its elements
  bool is_array;
  uint64_t count;                    ///< 1, or the elements of the array
  std::span<const std::byte> bytes;  ///< packed little-endian; each string has 8 bytes of length before it
};

/// A tensor as it is listed in the file.
struct GgufTensor {
  std::string name;            ///< as in the file, e.g. "blk.0.attn_q.weight"
  std::string_view type_name;  ///< "Q4_K", "IQ2_XXS"
  std::optional<DType> dtype;  ///< empty for a ggml type that this engine cannot read
  std::vector<int64_t> shape;  ///< outermost first: the file's dimensions reversed
  std::span<const std::byte> bytes;
};

/// A GGUF file, version 2 or 3, or all files of a split one, mapped. Everything is checked when it is opened:
/// counts, lengths, types, offsets and their sums. Immutable afterwards; reads are thread-safe.
class GgufFile {
 public:
  /// `path` may be any file of a split (NAME-00002-of-00003.gguf): all are opened, and the first one's
  /// metadata counts. Throws Error: not_found (a file or a shard of the split), malformed, unsupported
  /// (version).
  static GgufFile open(const std::filesystem::path& path);
  /// From memory, which must outlive the result. `what` is the name used in errors.
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& what);

  uint32_t version() const { return version_; }
  const std::string& what() const { return what_; }  ///< the name used in errors
  const std::vector<std::filesystem::path>& paths() const {
    return paths_;
  }  ///< in the order of the split; empty after parse
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* tensor(std::string_view tensor_name) const;

  /// The value of a key, or null.
  const GgufValue* find(std::string_view key) const;

  // Typed access: empty when the key is absent. Throw Error (malformed) that names the key, the type found
  // and the type expected, or the value where it is out of range.
  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;  ///< of any integer type
  std::optional<double> number(std::string_view key) const;    ///< of any integer or float type
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(
      std::string_view key) const;  ///< views into the mapped file
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<float>> floats(std::string_view key) const;

  /// The keys, in the order of the file.
  const std::vector<std::string_view>& keys() const { return keys_; }

 private:
  struct TransparentHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  template <typename T>
  using ByName = std::unordered_map<std::string_view, T, TransparentHash, std::equal_to<>>;

  GgufFile() = default;
  void index_tensors();
  const GgufValue* find_scalar(std::string_view key, std::string_view wanted) const;
  const GgufValue* find_array(std::string_view key, std::string_view wanted) const;
  [[noreturn]] void wrong_type(std::string_view key, const GgufValue& value, std::string_view wanted) const;

  std::vector<MappedFile> files_;  // all of the split; empty after parse
  std::vector<std::filesystem::path> paths_;
  std::string what_;
  uint32_t version_ = 0;
  std::vector<std::string_view> keys_;  // views into the mapping, which stays in place when this object moves
  ByName<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  ByName<size_t> tensor_by_name_;
};

}  // namespace qwench
