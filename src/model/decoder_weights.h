#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"

namespace qwench {

/// A Linear's weight [out, in] and its bias [out], which may be absent.
struct Projection {
  std::unique_ptr<Weight> weight;
  std::unique_ptr<Weight> bias;

  Linear linear() const { return {weight.get(), bias.get()}; }
};

struct LayerWeights {
  std::unique_ptr<Weight> input_layernorm;           // [hidden]
  Projection q_proj;                                 // [heads * head_dim, hidden]
  Projection k_proj;                                 // [kv_heads * head_dim, hidden]
  Projection v_proj;                                 // [kv_heads * head_dim, hidden]
  std::unique_ptr<Weight> q_norm;                    // [head_dim], absent without QK-norm
  std::unique_ptr<Weight> k_norm;                    // [head_dim]
  Projection o_proj;                                 // [hidden, heads * head_dim]
  std::unique_ptr<Weight> post_attention_layernorm;  // [hidden]
  Projection gate_proj;                              // [intermediate, hidden]
  Projection up_proj;                                // [intermediate, hidden]
  Projection down_proj;                              // [hidden, intermediate]
};

struct DecoderWeights {
  std::unique_ptr<Weight> embed_tokens;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  std::unique_ptr<Weight> norm;     // [hidden]
  std::unique_ptr<Weight> lm_head;  // [vocab, hidden]; absent where the embedding serves (tied)

  const Weight& head() const { return lm_head ? *lm_head : *embed_tokens; }

  /// Hands every tensor that the config implies to the backend, matrices as `dtype` or as stored, vectors as
  /// f32. The checkpoint must have passed check_tensors and outlive the weights. `progress` gets the share
  /// done.
  static DecoderWeights load(const Checkpoint& checkpoint, Backend& backend, std::optional<DType> dtype,
                             const std::function<void(double)>& progress = {});
};

/// Counts of a model's weights as the backend keeps them.
struct WeightTotals {
  int64_t parameters = 0;        // a tied embedding counts once
  uint64_t bytes = 0;            // kept
  uint64_t bytes_per_token = 0;  // read to compute one token: all layers and the head
  DType main_type = DType::f32;  // of most bytes among the layers' matrices
};
WeightTotals totals(const DecoderWeights& weights);

}  // namespace qwench
