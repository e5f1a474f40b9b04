#include "qwench/dtype.h"

#include <gtest/gtest.h>

namespace qwench {
namespace {

TEST(DType, NamesRoundTripInAnyCase) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << name(dtype);
  }
  EXPECT_EQ(dtype_from_name("BF16"), DType::bf16);
  EXPECT_EQ(dtype_from_name("bfloat16"), DType::bf16);
  EXPECT_EQ(dtype_from_name("float32"), DType::f32);
  EXPECT_EQ(dtype_from_name("Q4_K"), DType::q4_k);
  EXPECT_EQ(dtype_from_name("int3"), std::nullopt);
}

TEST(DType, BytesAreWholeBlocks) {
  EXPECT_EQ(bytes_of(DType::bf16, 10), 20U);
  EXPECT_EQ(bytes_of(DType::q8_0, 64), 68U);
  EXPECT_EQ(bytes_of(DType::q4_k, 512), 288U);
}

}  // namespace
}  // namespace qwench
