#include "model/decoder_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "model/kept_type.h"
#include "qwench/error.h"

namespace qwench {
namespace {

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, Backend& backend, std::optional<DType> dtype,
         const std::function<void(double)>& progress)
      : checkpoint_(checkpoint), backend_(backend), dtype_(dtype), progress_(progress) {}

  std::unique_ptr<Weight> optional_matrix(const std::string& name) { return load(checkpoint_.find(name)); }
  std::unique_ptr<Weight> optional_vector(const std::string& name) { return load(checkpoint_.find(name)); }
  std::unique_ptr<Weight> matrix(const std::string& name) { return load(&required(name)); }
  std::unique_ptr<Weight> table(const std::string& name) { return load(&required(name), true); }
  std::unique_ptr<Weight> vector(const std::string& name) { return load(&required(name)); }

  Projection projection(const std::string& name) {
    return {matrix(name + ".weight"), optional_vector(name + ".bias")};
  }

  /// Reading a tensor brings pages of its neighbours back.
  void release_copied() const {
    for (const TensorView* tensor : copied_) checkpoint_.release(*tensor);
  }

 private:
  const TensorView& required(const std::string& name) const {
    if (const TensorView* tensor = checkpoint_.find(name)) return *tensor;
    throw Error(ErrorKind::malformed,
                fmt::format("{}: the tensor {} is missing", checkpoint_.folder().string(), name));
  }

  std::unique_ptr<Weight> load(const TensorView* tensor, bool table = false) {
    if (tensor == nullptr) return nullptr;
    const DType kept = kept_type(*tensor, dtype_);
    auto weight = table ? backend_.load_table(*tensor, kept) : backend_.load(*tensor, kept);
    if (!weight->in_place) {
      checkpoint_.release(*tensor);  // never two copies in memory
      copied_.push_back(tensor);
    }
    bytes_done_ += tensor->bytes.size();
    if (progress_) {
      progress_(std::min(1.0, static_cast<double>(bytes_done_) /
                                  static_cast<double>(std::max<uint64_t>(1, checkpoint_.bytes()))));
    }
    return weight;
  }

  const Checkpoint& checkpoint_;
  Backend& backend_;
  std::optional<DType> dtype_;
  const std::function<void(double)>& progress_;
  uint64_t bytes_done_ = 0;
  std::vector<const TensorView*> copied_;
};

}  // namespace

DecoderWeights DecoderWeights::load(const Checkpoint& checkpoint, Backend& backend,
                                    std::optional<DType> dtype, const std::function<void(double)>& progress) {
  const ModelConfig& config = checkpoint.config();
  Loader loader(checkpoint, backend, dtype, progress);
  DecoderWeights weights;
  // The largest first: while a matrix is converted, its source is in memory beside what has been loaded.
  const TensorView* head = config.tie_word_embeddings ? nullptr : checkpoint.find("lm_head.weight");
  weights.embed_tokens = head != nullptr ? loader.table("model.embed_tokens.weight")
                                         : loader.matrix("model.embed_tokens.weight");
  if (head != nullptr) weights.lm_head = loader.matrix("lm_head.weight");
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    LayerWeights& w = weights.layers.emplace_back();
    w.input_layernorm = loader.vector(layer + "input_layernorm.weight");
    w.q_proj = loader.projection(layer + "self_attn.q_proj");
    w.k_proj = loader.projection(layer + "self_attn.k_proj");
    w.v_proj = loader.projection(layer + "self_attn.v_proj");
    w.q_norm = loader.optional_vector(layer + "self_attn.q_norm.weight");
    w.k_norm = loader.optional_vector(layer + "self_attn.k_norm.weight");
    w.o_proj = loader.projection(layer + "self_attn.o_proj");
    w.post_attention_layernorm = loader.vector(layer + "post_attention_layernorm.weight");
    w.gate_proj = loader.projection(layer + "mlp.gate_proj");
    w.up_proj = loader.projection(layer + "mlp.up_proj");
    w.down_proj = loader.projection(layer + "mlp.down_proj");
  }
  weights.norm = loader.vector("model.norm.weight");
  loader.release_copied();
  return weights;
}

WeightTotals totals(const DecoderWeights& weights) {
  WeightTotals sum;
  std::array<uint64_t, kDTypeCount> bytes_by_type{};
  const auto count = [&](const Weight* weight, bool read_per_token) {
    if (weight == nullptr) return;
    const int64_t numbers = weight->rows * weight->cols;
    const uint64_t bytes = weight->stored_bytes > 0 ? weight->stored_bytes
                                                    : bytes_of(weight->dtype, static_cast<uint64_t>(numbers));
    sum.parameters += numbers;
    sum.bytes += bytes;
    if (read_per_token) sum.bytes_per_token += bytes;
  };
  const auto count_projection = [&](const Projection& projection) {
    if (const Weight* matrix = projection.weight.get()) {
      bytes_by_type[static_cast<size_t>(matrix->dtype)] +=
          bytes_of(matrix->dtype, static_cast<uint64_t>(matrix->rows * matrix->cols));
    }
    count(projection.weight.get(), true);
    count(projection.bias.get(), true);
  };
  count(weights.embed_tokens.get(), !weights.lm_head);
  count(weights.lm_head.get(), true);
  count(weights.norm.get(), true);
  for (const LayerWeights& layer : weights.layers) {
    for (const auto* vector :
         {&layer.input_layernorm, &layer.q_norm, &layer.k_norm, &layer.post_attention_layernorm}) {
      count(vector->get(), true);
    }
    for (const Projection* projection : {&layer.q_proj, &layer.k_proj, &layer.v_proj, &layer.o_proj,
                                         &layer.gate_proj, &layer.up_proj, &layer.down_proj}) {
      count_projection(*projection);
    }
  }
  const auto most = std::max_element(bytes_by_type.begin(), bytes_by_type.end());
  sum.main_type = static_cast<DType>(most - bytes_by_type.begin());
  return sum;
}

}  // namespace qwench
