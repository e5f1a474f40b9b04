#include "model/device_weights.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "backend/vulkan/weight_layout.h"
#include "checkpoint/expected_tensors.h"
#include "model/kept_type.h"

namespace qwench {
namespace {

constexpr std::string_view kLayers = "model.layers.";
constexpr std::string_view kTable = "model.embed_tokens.weight";
constexpr uint64_t kAlignment = 512;

uint64_t bytes_on_device(const TensorView& tensor, std::optional<DType> dtype) {
  uint64_t bytes = static_cast<uint64_t>(tensor.count()) * sizeof(float);
  if (tensor.rows() > 1) {
    const DType kept = layout_type(tensor, kept_type(tensor, dtype), dtype == DType::f32);
    bytes = WeightLayout(kept, tensor.rows(), tensor.cols()).bytes();
  }
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

uint64_t DeviceWeights::resident(int gpu_layers) const {
  return std::accumulate(layers.begin(), layers.begin() + gpu_layers, outside);
}

uint64_t DeviceWeights::streamed(int gpu_layers) const {
  return std::accumulate(layers.begin() + gpu_layers, layers.end(), uint64_t{0});
}

uint64_t DeviceWeights::slots(int gpu_layers) const {
  const auto first = layers.begin() + gpu_layers;
  return first == layers.end() ? 0 : 2 * *std::max_element(first, layers.end());
}

DeviceWeights device_weights(const Checkpoint& checkpoint, std::optional<DType> dtype) {
  DeviceWeights weights;
  weights.layers.resize(static_cast<size_t>(checkpoint.config().num_layers));
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config())) {
    const TensorView* tensor = checkpoint.find(expected.name);
    if (tensor == nullptr) continue;
    const std::string_view name = expected.name;
    if (!name.starts_with(kLayers) || tensor->rows() < 2) {
      const uint64_t bytes = bytes_on_device(*tensor, dtype);
      weights.outside += bytes;
      if (name == kTable && !checkpoint.config().tie_word_embeddings) weights.table = bytes;
      continue;
    }
    size_t layer = 0;
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    weights.layers.at(layer) += bytes_on_device(*tensor, dtype);
  }
  return weights;
}

}  // namespace qwench
