#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/printable.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/weight_files.h"
#include "core/json.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "qwench/error.h"

namespace qwench {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

}  // namespace

std::shared_ptr<const Checkpoint> Checkpoint::open(const fs::path& path) {
  const std::shared_ptr<Checkpoint> checkpoint(new Checkpoint());
  checkpoint->path_ = path;
  const WeightFiles found = find_weight_files(path);
  checkpoint->folder_ = found.folder;
  try {
    if (found.gguf) {
      checkpoint->open_gguf(found.files.front());
    } else if (found.has_config) {
      checkpoint->open_folder(found);
    } else {
      checkpoint->open_safetensors(found.files);
    }
  } catch (const fs::filesystem_error& failure) {
    throw Error(ErrorKind::io, fmt::format("{}: {}", path.string(), failure.code().message()));
  }
  return checkpoint;
}

void Checkpoint::open_folder(const WeightFiles& found) {
  const fs::path config = folder_ / "config.json";
  config_ = ModelConfig::from_json(parse_json(read_text_file(config, kMaxConfigBytes), config.string()),
                                   config.string());
  const fs::path generation = folder_ / "generation_config.json";
  if (is_there(generation)) {
    generation_ = GenerationConfig::from_json(
        parse_json(read_text_file(generation, kMaxConfigBytes), generation.string()), generation.string());
  }
  open_safetensors(found.files);
  for (const auto& [tensor, file] : found.weight_map) {
    const std::string name = canonical_name(tensor);
    if (find(name) == nullptr && find_unreadable(name) == nullptr) {
      throw Error(ErrorKind::malformed,
                  fmt::format("{}: the index names tensor {}, but no file holds it",
                              (folder_ / file).string(), printable(std::string_view(tensor))));
    }
  }
  resolve_tied_head();
}

void Checkpoint::open_gguf(const fs::path& file) {
  gguf_ = GgufFile::open(file);
  files_ = gguf_->paths();
  for (const fs::path& part : files_) bytes_ += fs::file_size(part);
  config_ = ModelConfig::from_gguf(*gguf_);
  generation_ = GenerationConfig::from_gguf(*gguf_);
  for (const GgufTensor& tensor : gguf_->tensors()) {
    const std::string name = canonical_gguf_name(tensor.name);
    if (tensor.dtype) {
      tensors_.push_back({name, *tensor.dtype, tensor.shape, tensor.bytes, true});
    } else {
      unreadable_.push_back({name, std::string(tensor.type_name)});
    }
  }
  index_tensors();
}

void Checkpoint::open_safetensors(const std::vector<fs::path>& files) {
  files_ = files;
  for (const fs::path& file : files) {
    mapped_.push_back(MappedFile::open(file));
    const auto bytes = mapped_.back().bytes();
    bytes_ += bytes.size();
    for (SafetensorsEntry& entry : parse_safetensors(bytes, file.string())) {
      const std::string name = canonical_name(entry.name);
      if (entry.dtype) {
        const auto usable = aligned(entry.bytes, *entry.dtype);
        const bool in_file = usable.data() == entry.bytes.data();
        tensors_.push_back({name, *entry.dtype, std::move(entry.shape), usable, in_file});
      } else {
        unreadable_.push_back({name, entry.dtype_name});
      }
    }
  }
  index_tensors();
}

std::span<const std::byte> Checkpoint::aligned(std::span<const std::byte> bytes, DType dtype) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<size_t>(traits(dtype).block_bytes) == 0 ||
      bytes.empty())
    return bytes;
  auto& copy = aligned_copies_.emplace_back((bytes.size() + sizeof(float) - 1) / sizeof(float));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return std::as_bytes(std::span(copy)).first(bytes.size());
}

void Checkpoint::index_tensors() {
  const auto index = [&](const auto& tensors, auto& by_name, const auto& other) {
    by_name.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string_view name = tensors[i].name;
      if (!by_name.emplace(name, i).second || other.contains(name)) {
        throw Error(ErrorKind::malformed,
                    fmt::format("{}: tensor {} is there twice", path_.string(), printable(name)));
      }
    }
  };
  index(tensors_, by_name_, unreadable_by_name_);
  index(unreadable_, unreadable_by_name_, by_name_);
}

void Checkpoint::resolve_tied_head() {
  // Early Qwen2 checkpoints say tie_word_embeddings: false, or nothing, and have no head all the same: it is
  // the embedding.
  if (config_->tie_word_embeddings || config_->family != "qwen2" || find("lm_head.weight") != nullptr) return;
  const TensorView* embedding = find("model.embed_tokens.weight");
  if (embedding == nullptr) return;
  log_warning(
      fmt::format("{}: `tie_word_embeddings` is not true, but there is no lm_head.weight: the embedding is "
                  "used as the head",
                  path_.string()));
  config_->tie_word_embeddings = true;
}

const ModelConfig& Checkpoint::config() const {
  if (!config_) {
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: a lone .safetensors file has no config; name the folder that holds its config.json",
                    path_.string()));
  }
  return *config_;
}

std::vector<TokenId> Checkpoint::stop_token_ids() const {
  std::vector<TokenId> ids = generation_.eos_token_ids;
  if (config_) ids.insert(ids.end(), config_->eos_token_ids.begin(), config_->eos_token_ids.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void Checkpoint::release(const TensorView& tensor) const noexcept {
  if (tensor.mapped) qwench::release(tensor.bytes);
}

const UnreadableTensor* Checkpoint::find_unreadable(std::string_view name) const {
  const auto found = unreadable_by_name_.find(name);
  return found == unreadable_by_name_.end() ? nullptr : &unreadable_[found->second];
}

std::string Checkpoint::format() const {
  return gguf_ ? fmt::format("gguf v{}", gguf_->version()) : "safetensors";
}

}  // namespace qwench
