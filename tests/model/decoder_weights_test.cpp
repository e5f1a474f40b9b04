#include "model/decoder_weights.h"

#include <gtest/gtest.h>

#include <utility>

namespace qwench {
namespace {

std::unique_ptr<Weight> weight(DType dtype, int64_t rows, int64_t cols) {
  auto made = std::make_unique<Weight>();
  made->dtype = dtype;
  made->rows = rows;
  made->cols = cols;
  return made;
}

TEST(WeightTotals, TheMainTypeIsThatOfTheLayersWhateverTheEmbeddingIs) {
  DecoderWeights weights;
  weights.embed_tokens = weight(DType::f16, 10000, 256);
  weights.norm = weight(DType::f32, 1, 256);
  LayerWeights layer;
  layer.input_layernorm = weight(DType::f32, 1, 256);
  layer.q_proj.weight = weight(DType::q4_0, 256, 256);
  layer.q_proj.bias = weight(DType::f32, 1, 256);
  layer.up_proj.weight = weight(DType::q4_0, 512, 256);
  layer.down_proj.weight = weight(DType::q6_k, 256, 256);
  weights.layers.push_back(std::move(layer));
  const WeightTotals sum = totals(weights);
  EXPECT_EQ(sum.main_type, DType::q4_0);
  EXPECT_EQ(sum.parameters, 10000 * 256 + 3 * 256 + 1024 * 256);
}

}  // namespace
}  // namespace qwench
