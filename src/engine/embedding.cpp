#include "engine/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "checkpoint/json_fields.h"
#include "core/mapped_file.h"
#include "qwench/error.h"

namespace qwench {
namespace {

/// 0 none, 1 mean, 2 CLS, 3 last, 4 rank (llama.cpp's enum llama_pooling_type).
std::optional<Pooling> pooling_of(const GgufFile& file) {
  const auto architecture = file.string("general.architecture");
  const std::optional<int64_t> type =
      architecture ? file.integer(std::string(*architecture) + ".pooling_type") : std::nullopt;
  if (!type || *type == 0 || *type == 1) return Pooling::mean;
  return *type == 3 ? std::optional(Pooling::last) : std::nullopt;
}

std::optional<Pooling> read_pooling_config(const std::filesystem::path& path) {
  const Json json = parse_json(read_text_file(path), path.string());
  if (!json.is_object())
    throw Error(ErrorKind::malformed,
                fmt::format("{}: a JSON {}, expected an object", path.string(), json.type_name()));
  const JsonFields fields(json, path.string());
  if (const auto mode = fields.string("pooling_mode"))
    return *mode == "lasttoken" ? std::optional(Pooling::last) : pooling_named(*mode);
  std::vector<std::string> modes;
  for (const auto& [key, value] : json.items()) {
    if (key.starts_with("pooling_mode_") && fields.boolean(key.c_str()).value_or(false)) modes.push_back(key);
  }
  if (modes == std::vector<std::string>{"pooling_mode_mean_tokens"}) return Pooling::mean;
  if (modes == std::vector<std::string>{"pooling_mode_lasttoken"}) return Pooling::last;
  return std::nullopt;
}

}  // namespace

std::string_view name(Pooling pooling) noexcept { return pooling == Pooling::mean ? "mean" : "last"; }

std::optional<Pooling> pooling_named(std::string_view word) {
  if (word == "mean") return Pooling::mean;
  if (word == "last") return Pooling::last;
  return std::nullopt;
}

EmbeddingPool::EmbeddingPool(Pooling pooling, int length)
    : length_(length), next_(pooling == Pooling::mean ? 0 : length - 1) {}

bool EmbeddingPool::take(std::span<const float> state) {
  if (!std::all_of(state.begin(), state.end(), [](float x) { return std::isfinite(x); })) return false;
  sum_.resize(state.size());
  for (size_t i = 0; i < state.size(); ++i) sum_[i] += static_cast<double>(state[i]);
  ++next_;
  ++taken_;
  return true;
}

std::vector<float> EmbeddingPool::vector() const {
  std::vector<float> mean(sum_.size());
  for (size_t i = 0; i < sum_.size(); ++i) mean[i] = static_cast<float>(sum_[i] / taken_);
  return mean;
}

std::vector<float> unit_vector(std::span<const float> vector, int dimensions) {
  if (dimensions > 0) vector = vector.first(static_cast<size_t>(dimensions));
  double squares = 0;
  for (const float x : vector) squares += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::sqrt(squares);
  std::vector<float> unit(vector.begin(), vector.end());
  if (length > 0) {
    for (float& x : unit) x = static_cast<float>(static_cast<double>(x) / length);
  }
  return unit;
}

std::optional<Pooling> pooling_of(const Checkpoint& checkpoint) {
  if (const GgufFile* file = checkpoint.gguf()) return pooling_of(*file);
  const std::filesystem::path config = checkpoint.folder() / "1_Pooling" / "config.json";
  return is_there(config) ? read_pooling_config(config) : Pooling::mean;
}

}  // namespace qwench
