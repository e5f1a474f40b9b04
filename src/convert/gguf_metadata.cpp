#include "convert/gguf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/rope.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Rope = RopeConfig::Type;

[[noreturn]] void refuse(const Checkpoint& checkpoint, const std::string& what) {
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: a GGUF file cannot say {}", checkpoint.path().string(), what));
}

void add_rope(GgufWriter& writer, const Checkpoint& checkpoint, const std::string& prefix) {
  const RopeConfig& rope = checkpoint.config().rope;
  const auto number = [&](const char* end, double value) {
    writer.add_number(prefix + end, static_cast<float>(value));
  };
  number("rope.freq_base", rope.theta);
  switch (rope.type) {
    case Rope::standard:
    case Rope::llama3:  // rope_factors
      return;
    case Rope::dynamic:
      refuse(checkpoint, "that RoPE is scaled by the length of each sequence (dynamic NTK)");
    case Rope::linear:
      writer.add_text(prefix + "rope.scaling.type", "linear");
      number("rope.scaling.factor", rope.factor);
      return;
    case Rope::yarn:
      break;
  }
  if (!rope.truncate) refuse(checkpoint, "that YaRN's range is not rounded (truncate: false)");
  writer.add_text(prefix + "rope.scaling.type", "yarn");
  number("rope.scaling.factor", rope.factor);
  writer.add_count(prefix + "rope.scaling.original_context_length",
                   static_cast<uint32_t>(rope.original_max_position));
  if (const RopeConfig usual; rope.beta_fast != usual.beta_fast || rope.beta_slow != usual.beta_slow) {
    number("rope.scaling.yarn_beta_fast", rope.beta_fast);
    number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  }
  const double usual = 0.1 * std::log(rope.factor) + 1.0;
  const double factor = RopeFrequencies(rope, checkpoint.config().head_dim).attention_factor();
  if (std::abs(factor / usual - 1) > 1e-6) number("rope.scaling.attn_factor", factor / usual);
}

void add_sampling(GgufWriter& writer, const SamplingOptions& sampling) {
  const auto number = [&](const char* key, const std::optional<float>& value) {
    if (value) writer.add_number(std::string("general.sampling.") + key, *value);
  };
  number("temp", sampling.temperature);
  if (sampling.top_k)
    writer.add_count("general.sampling.top_k", static_cast<uint32_t>(std::max(*sampling.top_k, 0)));
  number("top_p", sampling.top_p);
  number("min_p", sampling.min_p);
  number("penalty_repeat", sampling.repetition_penalty);
}

}  // namespace

void add_model_metadata(GgufWriter& writer, const Checkpoint& checkpoint, const std::string& name) {
  const ModelConfig& config = checkpoint.config();
  if (std::any_of(config.sliding_window.begin(), config.sliding_window.end(),
                  [](int window) { return window != 0; })) {
    refuse(checkpoint, "which layers have a sliding window");
  }
  const std::string prefix = config.family + ".";
  const auto count = [&](const char* end, int64_t value) {
    writer.add_count(prefix + end, static_cast<uint32_t>(value));
  };
  writer.add_text("general.architecture", config.family);
  writer.add_text("general.type", "model");
  if (!name.empty()) writer.add_text("general.name", name);
  count("block_count", config.num_layers);
  count("context_length", std::min<int64_t>(config.max_position, UINT32_MAX));
  count("embedding_length", config.hidden_size);
  count("feed_forward_length", config.intermediate_size);
  count("attention.head_count", config.num_heads);
  count("attention.head_count_kv", config.num_kv_heads);
  count("attention.key_length", config.head_dim);
  count("attention.value_length", config.head_dim);
  writer.add_number(prefix + "attention.layer_norm_rms_epsilon", config.rms_norm_eps);
  count("vocab_size", config.vocab_size);
  if (config.family == "llama") count("rope.dimension_count", config.head_dim);
  add_rope(writer, checkpoint, prefix);
  add_sampling(writer, checkpoint.generation().sampling);
}

std::vector<float> rope_factors(const ModelConfig& config) {
  if (config.rope.type != Rope::llama3) return {};
  RopeConfig plain;
  plain.theta = config.rope.theta;
  const RopeFrequencies scaled(config.rope, config.head_dim);
  const RopeFrequencies unscaled(plain, config.head_dim);
  std::vector<float> factors(scaled.inv_freq().size());
  for (size_t i = 0; i < factors.size(); ++i) factors[i] = unscaled.inv_freq()[i] / scaled.inv_freq()[i];
  return factors;
}

uint32_t gguf_file_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::q4_0:
      return 2;
    case DType::q4_1:
      return 3;
    case DType::q8_0:
      return 7;
    case DType::q5_0:
      return 8;
    case DType::q5_1:
      return 9;
    case DType::q2_k:
      return 10;
    case DType::q3_k:
      return 11;
    case DType::q4_k:
      return 14;
    case DType::q5_k:
      return 16;
    case DType::q6_k:
      return 18;
    case DType::iq4_nl:
      return 25;
    case DType::bf16:
      return 32;
  }
  return 0;
}

}  // namespace qwench
