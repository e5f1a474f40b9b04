#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "qwench/dtype.h"

namespace qwench {

/// Writes a GGUF file, version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): first
/// everything is named, then the tensors' bytes are asked for one after the other, so that no more than a
/// piece of one is in memory.
class GgufWriter {
 public:
  /// Takes the next bytes of a tensor.
  using Put = std::function<void(std::span<const std::byte> bytes)>;
  /// Hands all bytes of tensor `index`, in their order, to `put`.
  using Produce = std::function<void(size_t index, const Put& put)>;

  void add_text(std::string_view key, std::string_view value);
  void add_count(std::string_view key, uint32_t value);
  void add_number(std::string_view key, float value);
  void add_flag(std::string_view key, bool value);
  void add_texts(std::string_view key, std::span<const std::string> values);
  void add_integers(std::string_view key, std::span<const int32_t> values);
  /// A value of another file, as it is.
  void add_copy(std::string_view key, const GgufValue& value);

  /// `shape` is outermost first; its last dimension holds whole blocks of the type.
  void add_tensor(std::string name, DType dtype, std::vector<int64_t> shape);

  uint64_t bytes() const;  ///< of the whole file

  /// Writes to a file beside `path`, which takes its name once it is whole; on an error nothing is left.
  /// Throws Error (io), also when `produce` gives another number of bytes than the tensor has.
  void write(const std::filesystem::path& path, const Produce& produce) const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    uint64_t bytes;
  };

  void begin_value(std::string_view key, GgufType type);
  std::string header() const;

  uint64_t values_ = 0;
  std::string metadata_;  // as it lies in the file
  std::vector<Tensor> tensors_;
};

}  // namespace qwench
