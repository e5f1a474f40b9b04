#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "qwench/dtype.h"

namespace qwench {

/// A tensor as a file's header lists it, whether this engine can compute with it or not.
struct ListedTensor {
  std::string name;            ///< canonical, see Checkpoint
  std::string stored_name;     ///< as in the file
  std::string type_name;       ///< as in the file: "BF16", "Q4_K", "I64"
  std::optional<DType> dtype;  ///< empty where it cannot be read
  std::vector<int64_t> shape;  ///< outermost first
  std::span<const std::byte> bytes;
  size_t file = 0;      ///< index into Listing::files
  uint64_t offset = 0;  ///< of its first byte in that file

  int64_t count() const;             ///< numbers in it
  std::optional<int> layer() const;  ///< N of "model.layers.N." or "blk.N."
  bool is_expert() const;            ///< of a mixture: only some of them work on a token
  bool is_embedding() const;         ///< model.embed_tokens.weight
};

struct ListedFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
};

/// The headers of a model's files: all that can be known without reading a weight, also of models that this
/// engine does not run. Immutable; reads are thread-safe.
class Listing {
 public:
  /// `path` as for Checkpoint::open. Throws Error as that does, but for what only a run needs.
  static Listing open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::string name() const;    ///< the folder's, or the file's without its extension
  std::string format() const;  ///< "safetensors" or "gguf v3"
  const std::vector<ListedFile>& files() const { return files_; }
  uint64_t bytes() const;  ///< of all files
  /// In the order of the model's layers: numbers in names count as numbers.
  const std::vector<ListedTensor>& tensors() const { return tensors_; }
  const ListedTensor* find(std::string_view canonical) const;
  const Json& config() const { return config_; }  ///< config.json; null for GGUF and for a lone file
  const GgufFile* gguf() const { return gguf_ ? &*gguf_ : nullptr; }

  /// A field of config.json, or with `gguf_key` (without the architecture's prefix) of the GGUF metadata, as
  /// a whole number.
  std::optional<int64_t> integer(const char* field, std::string_view gguf_key) const;

 private:
  Listing() = default;

  std::filesystem::path path_;
  std::vector<ListedFile> files_;
  std::vector<MappedFile> mapped_;
  std::vector<ListedTensor> tensors_;
  Json config_;
  std::optional<GgufFile> gguf_;
};

}  // namespace qwench
