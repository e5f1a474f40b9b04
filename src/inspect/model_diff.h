#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/thread_pool.h"
#include "inspect/listing.h"
#include "inspect/tensor_stats.h"

namespace qwench {

/// Where two checkpoints differ.
struct ModelDiff {
  struct Field {
    std::string name;
    Json a;  ///< null where it is absent
    Json b;
  };
  struct Tensor {
    std::string name;
    std::string what;  ///< a sentence: "only in A", "shape [4, 8] and [4, 6]", "values differ by up to 0.01"
  };
  std::vector<Field> fields;
  std::vector<Tensor> tensors;
  size_t equal_tensors = 0;  ///< same shape and values; types may differ

  bool equal() const { return fields.empty() && tensors.empty(); }
};

/// Compares the values of the config that the engine goes by, and every tensor by name, shape, type and
/// values. Reads all weights of both. A llama GGUF keeps the rows of q_proj and k_proj in another order than
/// a Hugging Face folder: they differ.
ModelDiff diff_models(const Listing& a, const Listing& b, ThreadPool& pool, const Progress& progress = {},
                      const std::stop_token& stop = {});
Json to_json(const ModelDiff& diff);

}  // namespace qwench
