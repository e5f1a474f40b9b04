#include "inspect/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "checkpoint/gguf_reader.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/weight_files.h"
#include "qwench/error.h"

namespace qwench {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// Where modules stand in a decoder; others come after, by name.
constexpr std::array kOrder{"model",
                            "embed_tokens",
                            "layers",
                            "input_layernorm",
                            "self_attn",
                            "q_proj",
                            "k_proj",
                            "v_proj",
                            "q_norm",
                            "k_norm",
                            "o_proj",
                            "post_attention_layernorm",
                            "mlp",
                            "gate",
                            "gate_proj",
                            "up_proj",
                            "down_proj",
                            "experts",
                            "shared_expert_gate",
                            "shared_expert",
                            "norm",
                            "lm_head",
                            "weight",
                            "bias"};

size_t place(std::string_view part) {
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), part) - kOrder.begin());
}

std::optional<int64_t> number(std::string_view part) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (part.empty() || error != std::errc{} || end != part.data() + part.size()) return std::nullopt;
  return value;
}

std::string_view take_part(std::string_view& name) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string_view part = name.substr(0, dot);
  name.remove_prefix(std::min(dot + 1, name.size()));
  return part;
}

bool comes_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view left = take_part(a);
    const std::string_view right = take_part(b);
    if (left == right) continue;
    const auto left_number = number(left);
    const auto right_number = number(right);
    if (left_number && right_number) return *left_number < *right_number;
    if (place(left) != place(right)) return place(left) < place(right);
    return left < right;
  }
  return a.size() < b.size();
}

}  // namespace

int64_t ListedTensor::count() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

std::optional<int> ListedTensor::layer() const {
  for (const std::string_view prefix : {std::string_view("model.layers."), std::string_view("blk.")}) {
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = std::string_view(name).substr(prefix.size());
    if (const auto n = number(take_part(rest)); n && *n >= 0 && *n < (1 << 20)) return static_cast<int>(*n);
  }
  return std::nullopt;
}

bool ListedTensor::is_expert() const {
  return name.find(".experts.") != std::string::npos || name.find("_exps.") != std::string::npos;
}

bool ListedTensor::is_embedding() const { return name == "model.embed_tokens.weight"; }

Listing Listing::open(const fs::path& path) {
  Listing listing;
  listing.path_ = path;
  const WeightFiles found = find_weight_files(path);
  std::vector<fs::path> files = found.files;
  try {
    if (found.gguf) {
      listing.gguf_ = GgufFile::open(files.front());
      files = listing.gguf_->paths();
    } else if (found.has_config) {
      const fs::path config = found.folder / "config.json";
      listing.config_ = parse_json(read_text_file(config, kMaxConfigBytes), config.string());
    }
  } catch (const fs::filesystem_error& failure) {
    throw Error(ErrorKind::io, fmt::format("{}: {}", path.string(), failure.code().message()));
  }
  for (const fs::path& file : files) {
    listing.mapped_.push_back(MappedFile::open(file));
    const std::span<const std::byte> bytes = listing.mapped_.back().bytes();
    const size_t index = listing.files_.size();
    listing.files_.push_back({file, bytes.size()});
    const auto offset = [&](std::span<const std::byte> data) {
      return data.empty() ? 0 : static_cast<uint64_t>(data.data() - bytes.data());
    };
    if (found.gguf) {
      for (GgufTensor& t : read_gguf(bytes, file.string()).tensors) {
        listing.tensors_.push_back({canonical_gguf_name(t.name), t.name, std::string(t.type_name), t.dtype,
                                    std::move(t.shape), t.bytes, index, offset(t.bytes)});
      }
    } else {
      for (SafetensorsEntry& t : parse_safetensors(bytes, file.string())) {
        listing.tensors_.push_back({canonical_name(t.name), t.name, t.dtype_name, t.dtype, std::move(t.shape),
                                    t.bytes, index, offset(t.bytes)});
      }
    }
  }
  std::stable_sort(listing.tensors_.begin(), listing.tensors_.end(),
                   [](const ListedTensor& a, const ListedTensor& b) { return comes_before(a.name, b.name); });
  return listing;
}

std::string Listing::name() const {
  const fs::path absolute = fs::absolute(path_).lexically_normal();
  const fs::path last = absolute.has_filename() ? absolute : absolute.parent_path();
  return (fs::is_directory(last) ? last.filename() : last.stem()).string();
}

std::string Listing::format() const {
  return gguf_ ? fmt::format("gguf v{}", gguf_->version()) : "safetensors";
}

uint64_t Listing::bytes() const {
  uint64_t total = 0;
  for (const ListedFile& file : files_) total += file.bytes;
  return total;
}

const ListedTensor* Listing::find(std::string_view canonical) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const ListedTensor& t) { return t.name == canonical; });
  return found == tensors_.end() ? nullptr : &*found;
}

std::optional<int64_t> Listing::integer(const char* field, std::string_view gguf_key) const {
  if (gguf_) {
    const auto architecture = gguf_->string("general.architecture");
    if (!architecture || gguf_key.empty()) return std::nullopt;
    return gguf_->integer(fmt::format("{}.{}", *architecture, gguf_key));
  }
  if (!config_.is_object()) return std::nullopt;
  const auto found = config_.find(field);
  if (found == config_.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

}  // namespace qwench
