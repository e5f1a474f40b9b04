#include "qwench/dtype.h"

#include <array>
#include <string>

#include "core/ascii.h"

namespace qwench {

const DTypeTraits& traits(DType dtype) noexcept {
  static constexpr std::array<DTypeTraits, kDTypeCount> kTraits{{
      {"f32", 1, 4},
      {"f16", 1, 2},
      {"bf16", 1, 2},
      {"q8_0", 32, 34},
      {"q4_0", 32, 18},
      {"q4_1", 32, 20},
      {"q5_0", 32, 22},
      {"q5_1", 32, 24},
      {"q2_k", 256, 84},
      {"q3_k", 256, 110},
      {"q4_k", 256, 144},
      {"q5_k", 256, 176},
      {"q6_k", 256, 210},
      {"iq4_nl", 32, 18},
  }};
  return kTraits[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view text) noexcept {
  const std::string lower = ascii_lower(text);
  if (lower == "float32" || lower == "float") return DType::f32;
  if (lower == "float16" || lower == "half") return DType::f16;
  if (lower == "bfloat16") return DType::bf16;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (lower == name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace qwench
