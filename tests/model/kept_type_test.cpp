#include "model/kept_type.h"

#include <gtest/gtest.h>

namespace qwench {
namespace {

TensorView matrix(DType stored, int64_t cols, const std::string& name = "model.layers.0.mlp.up_proj.weight") {
  return {name, stored, {64, cols}, {}};
}

TEST(KeptType, VectorsAreF32AndMatricesAsStoredOrAsWanted) {
  EXPECT_EQ(kept_type({"model.norm.weight", DType::bf16, {64}, {}}, DType::q8_0), DType::f32);
  EXPECT_EQ(kept_type(matrix(DType::bf16, 256), {}), DType::bf16);
  EXPECT_EQ(kept_type(matrix(DType::q4_k, 256), {}), DType::q4_k);
  EXPECT_EQ(kept_type(matrix(DType::q4_k, 256), DType::f32), DType::f32);
  EXPECT_EQ(kept_type(matrix(DType::bf16, 256), DType::q4_k), DType::q4_k);
}

TEST(KeptType, EmbeddingAndHeadKeepEightBits) {
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    EXPECT_EQ(kept_type(matrix(DType::bf16, 256, name), DType::q4_0), DType::q8_0);
    EXPECT_EQ(kept_type(matrix(DType::bf16, 256, name), DType::q8_0), DType::q8_0);
    EXPECT_EQ(kept_type(matrix(DType::bf16, 256, name), DType::f16), DType::f16);
  }
}

TEST(KeptType, RowsThatAreNoWholeBlocks) {
  EXPECT_EQ(kept_type(matrix(DType::bf16, 96), DType::q4_k), DType::q8_0);
  EXPECT_EQ(kept_type(matrix(DType::bf16, 96), DType::q4_0), DType::q4_0);
  EXPECT_EQ(kept_type(matrix(DType::bf16, 40), DType::q4_k), DType::bf16);
  EXPECT_EQ(kept_type(matrix(DType::f32, 40), DType::q8_0), DType::f32);
}

TEST(KeptType, WhatTakesNoMoreBytesStays) {
  EXPECT_EQ(kept_type(matrix(DType::q4_1, 256), DType::q8_0), DType::q4_1);
  EXPECT_EQ(kept_type(matrix(DType::q4_k, 256), DType::q4_0), DType::q4_k);
  EXPECT_EQ(kept_type(matrix(DType::q8_0, 256), DType::q4_0), DType::q4_0);
  EXPECT_EQ(kept_type(matrix(DType::q6_k, 256, "lm_head.weight"), DType::q4_0), DType::q6_k);
}

}  // namespace
}  // namespace qwench
