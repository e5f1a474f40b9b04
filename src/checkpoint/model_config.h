#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "qwench/dtype.h"
#include "qwench/sampling.h"

namespace qwench {

class GgufFile;

/// How positions become rotation angles (Su et al. 2021, arXiv:2104.09864), with the meaning that the field
/// names have in Hugging Face transformers (modeling_rope_utils). With d = head_dim, inv_freq[i] =
/// theta^(-2i/d) for i in [0, d/2) is the start of all of them.
struct RopeConfig {
  enum class Type {
    standard,  ///< inv_freq as it is ("default")
    linear,    ///< inv_freq / factor (position interpolation, arXiv:2306.15595)
    dynamic,   ///< NTK: past original_max_position, theta grows with the length: theta * (factor * n /
               ///< original - (factor - 1))^(d / (d - 2))
    yarn,      ///< arXiv:2309.00071
    llama3,    ///< long wavelengths divided by factor, short ones kept, a smooth step between
  };
  Type type = Type::standard;
  double theta = 10000.0;  ///< > 0
  double factor = 1.0;     ///< > 0; not used by standard
  /// Positions the model was trained on, > 0 but for standard and linear. For dynamic:
  /// max_position_embeddings.
  double original_max_position = 0;

  // yarn
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  ///< the correction range is rounded outwards to whole dimensions
  /// Multiplies cos and sin. Absent: from mscale and mscale_all_dim if both are there and not 0, as m(mscale)
  /// / m(mscale_all_dim) with m(s) = 0.1 s ln(factor) + 1; else m(1).
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;

  // llama3; high_freq_factor > low_freq_factor > 0
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;

  /// [head_dim / 2] or empty: inv_freq[i] is divided by freq_factors[i] (a GGUF file's rope_freqs.weight,
  /// which is how that format stores llama3).
  std::vector<float> freq_factors;

  bool operator==(const RopeConfig&) const = default;
};

std::string_view name(RopeConfig::Type type) noexcept;

/// What a decoder is made of. Every value has been checked: counts are at least 1 and small enough that
/// products of any three fit 64 bits, num_heads is a multiple of num_kv_heads, head_dim is even.
struct ModelConfig {
  std::string family;  ///< "qwen2", "qwen3" or "llama"
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;  ///< given, or hidden_size / num_heads: num_heads * head_dim may differ from hidden_size
  int vocab_size = 0;
  /// Positions the model can use: max_position_embeddings, or factor times original_max_position where yarn
  /// or dynamic scaling makes that more.
  int64_t max_position = 0;
  float rms_norm_eps = 1e-6f;  ///< finite, in (0, 1)
  /// The logits come from model.embed_tokens.weight. ModelConfig::from_json gives the config's flag;
  /// Checkpoint::config gives what holds: also true where a Qwen2 checkpoint says false and has no
  /// lm_head.weight.
  bool tie_word_embeddings = false;
  bool qk_norm = false;  ///< RMSNorm of each query and key head before RoPE (Qwen3)
  /// RoPE rotates (2i, 2i + 1) and not (i, i + head_dim / 2): llama-architecture GGUF files.
  bool interleaved_rope = false;
  RopeConfig rope;
  std::vector<int> sliding_window;     ///< [num_layers]: position p sees (p - window, p]; 0: all
  bool attention_bias = false;         ///< q, k, v and o must have biases; otherwise they count by presence
  std::optional<DType> stored_dtype;   ///< torch_dtype / dtype; absent for GGUF
  std::vector<TokenId> eos_token_ids;  ///< of this file alone: see Checkpoint::stop_token_ids
  std::optional<TokenId> bos_token_id;

  bool operator==(const ModelConfig&) const = default;

  /// From the content of a config.json. `what` names it in errors. Fields at null count as absent; absent
  /// fields have the defaults of transformers' configuration classes; hidden_size, intermediate_size,
  /// num_hidden_layers, num_attention_heads and vocab_size must be there. Throws Error: malformed for a
  /// missing field, a wrong type or range; unsupported for what this engine cannot do (mixture of experts,
  /// quantization_config, ...).
  static ModelConfig from_json(const Json& json, const std::string& what);

  /// From the metadata of a GGUF file (and the shapes of its tensors, where the metadata leaves a size open).
  static ModelConfig from_gguf(const GgufFile& file);
};

}  // namespace qwench
