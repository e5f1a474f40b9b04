#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_config.h"

namespace qwench {

/// A tensor that a config implies.
struct ExpectedTensor {
  enum class Kind {
    matrix,  ///< embedding, head, projections: any type
    vector,  ///< norms and biases: F32, F16 or BF16
  };
  std::string name;            ///< canonical, see Checkpoint
  std::vector<int64_t> shape;  ///< outermost first: [out_features, in_features]
  Kind kind;
  bool optional;  ///< a bias of attention that the config does not promise: counts by presence
};

/// All tensors that a decoder of this config may have, in the order of its layers.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// Each expected tensor is there with its shape and a type that can be read, and nothing else is there apart
/// from tensors known to be redundant (a tied model's lm_head.weight, stored rotary frequencies, ...). Throws
/// Error (malformed, unsupported) that names the tensor, what was found and what was expected.
void check_tensors(const Checkpoint& checkpoint);

/// All that check_tensors would find, a sentence each; empty when the tensors are as they should be.
std::vector<std::string> tensor_problems(const Checkpoint& checkpoint);

}  // namespace qwench
