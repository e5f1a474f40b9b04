#include "checkpoint/ggml_types.h"

#include <algorithm>
#include <array>

namespace qwench {
namespace {

constexpr auto kNone = std::nullopt;
constexpr std::array<GgmlType, 34> kTypes{{
    {0, "F32", 1, 4, DType::f32},
    {1, "F16", 1, 2, DType::f16},
    {2, "Q4_0", 32, 18, DType::q4_0},
    {3, "Q4_1", 32, 20, DType::q4_1},
    {6, "Q5_0", 32, 22, DType::q5_0},
    {7, "Q5_1", 32, 24, DType::q5_1},
    {8, "Q8_0", 32, 34, DType::q8_0},
    {9, "Q8_1", 32, 36, kNone},
    {10, "Q2_K", 256, 84, DType::q2_k},
    {11, "Q3_K", 256, 110, DType::q3_k},
    {12, "Q4_K", 256, 144, DType::q4_k},
    {13, "Q5_K", 256, 176, DType::q5_k},
    {14, "Q6_K", 256, 210, DType::q6_k},
    {15, "Q8_K", 256, 292, kNone},
    {16, "IQ2_XXS", 256, 66, kNone},
    {17, "IQ2_XS", 256, 74, kNone},
    {18, "IQ3_XXS", 256, 98, kNone},
    {19, "IQ1_S", 256, 50, kNone},
    {20, "IQ4_NL", 32, 18, DType::iq4_nl},
    {21, "IQ3_S", 256, 110, kNone},
    {22, "IQ2_S", 256, 82, kNone},
    {23, "IQ4_XS", 256, 136, kNone},
    {24, "I8", 1, 1, kNone},
    {25, "I16", 1, 2, kNone},
    {26, "I32", 1, 4, kNone},
    {27, "I64", 1, 8, kNone},
    {28, "F64", 1, 8, kNone},
    {29, "IQ1_M", 256, 56, kNone},
    {30, "BF16", 1, 2, DType::bf16},
    {34, "TQ1_0", 256, 54, kNone},
    {35, "TQ2_0", 256, 66, kNone},
    {39, "MXFP4", 32, 17, kNone},
    {40, "NVFP4", 64, 36, kNone},
    {41, "Q1_0", 128, 18, kNone},
}};

}  // namespace

const GgmlType* ggml_type(uint32_t number) noexcept {
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const GgmlType& t) { return t.number == number; });
  return found == kTypes.end() ? nullptr : found;
}

std::string_view readable_ggml_types() noexcept {
  return "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K and IQ4_NL";
}

}  // namespace qwench
