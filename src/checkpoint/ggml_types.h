#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "qwench/dtype.h"

namespace qwench {

/// A tensor type of GGUF files (https://github.com/ggml-org/ggml/blob/master/include/ggml.h, enum ggml_type).
struct GgmlType {
  uint32_t number;
  std::string_view name;
  uint32_t block_size;  ///< numbers in a block
  uint32_t block_bytes;
  std::optional<DType> dtype;  ///< empty for a type that this engine cannot read
};

/// Null for a number that no type has (types that were removed from the format included).
const GgmlType* ggml_type(uint32_t number) noexcept;

/// "F32, F16, Q4_0, ...": the types that this engine can read.
std::string_view readable_ggml_types() noexcept;

}  // namespace qwench
