#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"

namespace qwench {

/// Rotary position embedding's angles (Su et al. 2021, arXiv:2104.09864) under each published scaling: linear
/// (Chen et al. 2023, arXiv:2306.15595), dynamic NTK, YaRN (Peng et al. 2023, arXiv:2309.00071) and Llama
/// 3's. Immutable, thread-safe.
class RopeFrequencies {
 public:
  RopeFrequencies(const RopeConfig& config, int head_dim);

  /// cos and sin of every rotated pair at `position`, [head_dim / 2] each, times the scaling's attention
  /// factor.
  ///
  /// Dynamic scaling depends on how long the sequence is. The official implementation rotates a whole prompt
  /// by its length and each later token by the length it has then, so a row's length is max(prompt_length,
  /// position + 1): this gives the same numbers however a prompt is cut into chunks. Other scalings ignore
  /// prompt_length.
  void fill(int position, int prompt_length, std::span<float> cos, std::span<float> sin) const;

  std::span<const float> inv_freq() const { return inv_freq_; }  // [head_dim / 2], before dynamic scaling
  float attention_factor() const { return attention_factor_; }

 private:
  /// The base that dynamic NTK scaling gives a sequence of `length` positions.
  double dynamic_theta(int length) const;

  RopeConfig config_;
  int head_dim_;
  std::vector<float> inv_freq_;
  float attention_factor_ = 1.0f;
};

}  // namespace qwench
