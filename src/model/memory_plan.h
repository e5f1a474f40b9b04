#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/model_config.h"
#include "qwench/dtype.h"

namespace qwench {

/// What a loaded model holds in memory. Bytes.
struct MemoryPlan {
  uint64_t weights = 0;      // mapped or converted
  uint64_t activations = 0;  // the decoder's buffers
  uint64_t kv_per_token = 0;
  int context = 0;  // positions a sequence may have
  int blocks = 0;   // of the KV cache
  int logit_rows = 0;

  uint64_t kv_cache() const;
};

struct MemoryRequest {
  uint64_t weights = 0;
  bool quantized_weights = false;  // any of them: activations are quantized too then
  DType kv_dtype = DType::f16;
  int context = 0;  // 0: the model's own limit, or what fits
  int max_batch = 1;
  int max_batch_tokens = 1;
  int max_logit_rows = 1;
  int64_t cache_tokens = 0;  // positions in the KV cache; 0: those of max_batch sequences
  double cache_share = 1;  // of what weights and buffers leave, for the cache, where one sequence needs less
  uint64_t available = 0;  // bytes there are
  std::optional<uint64_t> reserve = {};  // bytes left to others; absent: what the system and requests need
  int q8_elements = 32;                  // heads have a multiple of these where cells may be q8_0
  int most_blocks = 1 << 26;             // of the KV cache: what a device's buffers hold
};

/// A type of cells that takes less than this one and costs an answer least; empty where there is none.
/// `q8_elements` is MemoryRequest's.
std::optional<DType> smaller_cells(DType cells, int head_dim, int q8_elements);

/// The decoder's buffers.
uint64_t activation_bytes(const ModelConfig& config, const MemoryRequest& request);

/// The KV cache holds max_batch sequences of full length or what memory allows, and at least one. Throws
/// Error: invalid_argument when the context is longer than the model's, unsupported for the type of the cells
/// (kernels/kv_cells.h), out_of_memory when it does not fit.
MemoryPlan plan_memory(const ModelConfig& config, const MemoryRequest& request);

}  // namespace qwench
