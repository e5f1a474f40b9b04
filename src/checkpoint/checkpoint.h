#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/generation_config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "core/mapped_file.h"
#include "core/tensor_view.h"

namespace qwench {

struct WeightFiles;

/// A tensor that is in the files but has a type this engine cannot read as a weight.
struct UnreadableTensor {
  std::string name;       ///< canonical
  std::string type_name;  ///< "I64", "IQ2_XXS"
};

/// A model on disk: what its files say and where its tensors lie. Opening maps the files and reads their
/// headers; weights are not touched. Immutable once opened, reads are thread-safe, and views live as long as
/// the object.
///
/// Tensors have their canonical Hugging Face names, always with the "model." prefix
/// ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.norm.weight",
/// "lm_head.weight"), whatever the files call them. Their bytes are aligned for the element type.
class Checkpoint {
 public:
  /// `path` is a Hugging Face folder (config.json beside *.safetensors), a .gguf file (any one of a split), a
  /// folder that holds one GGUF model, or a lone .safetensors file (tensors only). Throws Error: not_found,
  /// malformed, unsupported. Whether the tensors are those that the config asks for is check_tensors'
  /// business (expected_tensors.h).
  static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& path);

  bool has_config() const { return config_.has_value(); }
  const ModelConfig& config() const;  ///< throws Error (not_found) for a lone .safetensors file
  const GenerationConfig& generation() const { return generation_; }

  /// The union of what config.json and generation_config.json, or the metadata of a GGUF file (eos, eot and
  /// eom), name; ascending. The tokenizer's eos_token and the template's end of turn are added by the engine.
  std::vector<TokenId> stop_token_ids() const;

  const TensorView* find(std::string_view name) const;  ///< null when it is not there
  std::span<const TensorView> tensors() const { return tensors_; }
  /// Gives back the memory of a tensor's pages; they come from the file again when they are read.
  void release(const TensorView& tensor) const noexcept;
  const std::vector<UnreadableTensor>& unreadable_tensors() const { return unreadable_; }
  const UnreadableTensor* find_unreadable(std::string_view name) const;

  const std::vector<std::filesystem::path>& files() const { return files_; }  ///< the weight files
  uint64_t bytes() const { return bytes_; }                                   ///< their size, summed
  const GgufFile* gguf() const { return gguf_ ? &*gguf_ : nullptr; }
  const std::filesystem::path& path() const { return path_; }  ///< as given to open
  const std::filesystem::path& folder() const {
    return folder_;
  }                            ///< where tokenizer.json and the like would be
  std::string format() const;  ///< "safetensors" or "gguf v3"

 private:
  Checkpoint() = default;
  void open_folder(const WeightFiles& found);
  void open_gguf(const std::filesystem::path& file);
  void open_safetensors(const std::vector<std::filesystem::path>& files);
  std::span<const std::byte> aligned(std::span<const std::byte> bytes, DType dtype);
  void index_tensors();
  void resolve_tied_head();

  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> files_;
  uint64_t bytes_ = 0;
  std::vector<MappedFile> mapped_;  // safetensors files
  std::optional<GgufFile> gguf_;
  std::vector<std::vector<float>> aligned_copies_;  // of tensors that lie at odd addresses in their file
  std::optional<ModelConfig> config_;
  GenerationConfig generation_;
  std::vector<TensorView> tensors_;
  std::vector<UnreadableTensor> unreadable_;
  std::unordered_map<std::string_view, size_t> by_name_;             // into tensors_
  std::unordered_map<std::string_view, size_t> unreadable_by_name_;  // into unreadable_
};

}  // namespace qwench
