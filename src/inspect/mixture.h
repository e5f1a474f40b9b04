#pragma once

#include <string>
#include <vector>

#include "checkpoint/expected_tensors.h"
#include "checkpoint/model_config.h"
#include "core/json.h"
#include "inspect/listing.h"

namespace qwench {

/// The config of a mixture of experts (Shazeer et al. 2017, arXiv:1701.06538) as Qwen2-MoE and Qwen3-MoE have
/// it, by the names of transformers' Qwen2MoeConfig and Qwen3MoeConfig. This engine does not run them; their
/// files can be checked.
struct MixtureConfig {
  ModelConfig dense;   ///< all but the experts; its family is "qwen2" or "qwen3"
  std::string family;  ///< "qwen2_moe" or "qwen3_moe"
  int experts = 0;
  int experts_per_token = 0;  ///< 1 to experts
  int expert_intermediate_size = 0;
  int shared_intermediate_size = 0;  ///< of the expert that works on each token (Qwen2); 0: there is none
  std::vector<bool> sparse;          ///< [num_layers]: whether the layer has experts, or one MLP

  /// Throws Error (malformed, unsupported) as ModelConfig::from_json does.
  static MixtureConfig from_json(const Json& json, const std::string& what);
};

/// Whether a config.json is that of a mixture which MixtureConfig reads.
bool is_mixture(const Json& config);

/// All tensors of such a model, in the order of its layers.
std::vector<ExpectedTensor> expected_tensors(const MixtureConfig& config);

/// What is wrong with the tensors, a sentence each: a missing one, another shape, one that has no place.
std::vector<std::string> tensor_problems(const Listing& listing, const MixtureConfig& config);

}  // namespace qwench
