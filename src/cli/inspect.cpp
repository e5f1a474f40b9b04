#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoint/checkpoint.h"
#include "checkpoint/expected_tensors.h"
#include "checkpoint/weight_files.h"
#include "cli/model_flags.h"
#include "core/json.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "engine/model_text.h"
#include "inspect/listing.h"
#include "inspect/mixture.h"
#include "qwench/error.h"
#include "text/tokenizer.h"

namespace qwench::cli {
namespace {

namespace fs = std::filesystem;

std::string megabytes(uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

struct Weights {
  int64_t parameters = 0;
  DType most = DType::f32;  // the type that takes the most bytes
};

Weights weigh(const Checkpoint& checkpoint) {
  Weights weights;
  std::array<uint64_t, kDTypeCount> bytes{};
  for (const TensorView& tensor : checkpoint.tensors()) {
    weights.parameters += tensor.count();
    bytes[static_cast<size_t>(tensor.dtype)] += tensor.bytes.size();
  }
  weights.most = static_cast<DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
  return weights;
}

std::string describe_text(const ModelText& text) {
  std::string result =
      text.tokenizer() ? fmt::format("a tokenizer with {} ids", text.tokenizer()->size()) : "no tokenizer";
  return result + (text.templates() != nullptr ? " and a chat template" : "");
}

CheckResult all_of(std::vector<std::string> problems) {
  std::string first = problems.front();
  if (problems.size() > 1)
    first += fmt::format(" (and {})", plural(static_cast<int64_t>(problems.size()) - 1, "more problem"));
  return {std::move(first), std::move(problems)};
}

/// A mixture of experts, which can be checked though it does not run.
CheckResult check_mixture(const fs::path& path, const Listing& listing) {
  const MixtureConfig config = MixtureConfig::from_json(listing.config(), (path / "config.json").string());
  std::vector<std::string> problems = tensor_problems(listing, config);
  if (!problems.empty()) return all_of(std::move(problems));
  return {fmt::format(
              "{}: sound; {} in {}, {}; a {} model of {}, {} experts, {} of them for a token; {}. Models "
              "of experts are not run yet",
              path.string(), listing.format(), plural(static_cast<int64_t>(listing.files().size()), "file"),
              megabytes(listing.bytes()), config.family, plural(config.dense.num_layers, "layer"),
              config.experts, config.experts_per_token, describe_text(ModelText::from_folder(path))),
          {}};
}

bool is_mixture_folder(const fs::path& path) {
  const WeightFiles found = find_weight_files(path);
  if (found.gguf || !found.has_config || !fs::is_directory(path)) return false;
  constexpr size_t kMaxConfigBytes = size_t{1} << 20;
  const std::string file = (path / "config.json").string();
  return is_mixture(parse_json(read_text_file(file, kMaxConfigBytes), file));
}

CheckResult check_model(const fs::path& path) {
  if (is_mixture_folder(path)) return check_mixture(path, Listing::open(path));
  const auto checkpoint = Checkpoint::open(path);
  const Weights weights = weigh(*checkpoint);
  const std::string file = fmt::format("{} in {}, {}", checkpoint->format(),
                                       plural(static_cast<int64_t>(checkpoint->files().size()), "file"),
                                       megabytes(checkpoint->bytes()));
  if (!checkpoint->has_config()) {
    const size_t tensors = checkpoint->tensors().size() + checkpoint->unreadable_tensors().size();
    return {fmt::format("{}: sound; {}; {}, no config", path.string(), file,
                        plural(static_cast<int64_t>(tensors), "tensor")),
            {}};
  }
  std::vector<std::string> problems = tensor_problems(*checkpoint);
  if (!problems.empty()) return all_of(std::move(problems));
  const ModelText text = ModelText::open(*checkpoint);
  const ModelConfig& config = checkpoint->config();
  if (text.tokenizer() && text.tokenizer()->size() > config.vocab_size) {
    log_warning(fmt::format("{}: the tokenizer has ids up to {}, but the model only {}", path.string(),
                            text.tokenizer()->size() - 1, config.vocab_size));
  }
  return {fmt::format("{}: sound; {}; a {} model of {:.1f} M parameters, most of them {}; {}, hidden size "
                      "{}, {} heads on {} "
                      "of {} dimensions, "
                      "context {}; {}",
                      path.string(), file, config.family, static_cast<double>(weights.parameters) / 1e6,
                      name(weights.most), plural(config.num_layers, "layer"), config.hidden_size,
                      config.num_heads, config.num_kv_heads, config.head_dim, config.max_position,
                      describe_text(text)),
          {}};
}

bool has_only_a_tokenizer(const fs::path& folder) {
  if (!is_there(folder / "tokenizer.json") || is_there(folder / "config.json")) return false;
  return std::none_of(fs::directory_iterator(folder), fs::directory_iterator(),
                      [](const fs::directory_entry& entry) {
                        const fs::path extension = entry.path().extension();
                        return extension == ".safetensors" || extension == ".gguf" || extension == ".bin";
                      });
}

/// What a file is that means something beside others alone; empty where it may stand on its own.
std::string part_of_folder(const fs::path& path) {
  const std::string file = path.filename().string();
  if (file == "config.json") return "a model's config";
  if (file == "generation_config.json") return "a model's sampling settings";
  if (file == "tokenizer_config.json") return "a tokenizer's config";
  if (file == "special_tokens_map.json" || file == "added_tokens.json" || file == "vocab.json")
    return "a part of a tokenizer";
  if (file.ends_with(".safetensors.index.json")) return "the index of a model's weights";
  return "";
}

}  // namespace

CheckResult check_path(const fs::path& path) {
  try {
    if (fs::is_directory(path)) {
      if (!has_only_a_tokenizer(path)) return check_model(path);
      return {fmt::format("{}: sound; {}, no weights", path.string(),
                          describe_text(ModelText::from_folder(path))),
              {}};
    }
    if (const std::string part = part_of_folder(path); !part.empty()) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: {}, no tokenizer; name the folder, {}, to check it with what is beside it",
                              path.string(), part,
                              path.has_parent_path() ? path.parent_path().string() : std::string(".")));
    }
    if (path.extension() == ".json") {
      const auto tokenizer = Tokenizer::from_json_text(read_text_file(path), path.string());
      return {fmt::format("{}: sound; a tokenizer with {} ids", path.string(), tokenizer->size()), {}};
    }
    // Blobs of the Hugging Face cache have no extension: GGUF files tell by their first bytes.
    const bool model = path.extension() == ".gguf" || path.extension() == ".safetensors" ||
                       MappedFile::open(path).text().starts_with("GGUF");
    if (!model) {
      throw Error(
          ErrorKind::unsupported,
          fmt::format("{}: neither a checkpoint folder nor a .gguf, a .safetensors or a tokenizer.json",
                      path.string()));
    }
    return check_model(path);
  } catch (const fs::filesystem_error& failure) {
    throw Error(ErrorKind::io, fmt::format("{}: {}", path.string(), failure.code().message()));
  }
}

}  // namespace qwench::cli
