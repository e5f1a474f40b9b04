#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qwench {

/// How numbers are stored. The quantized types are those of ggml; each holds blocks of `block_size` numbers
/// along the innermost dimension (layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h).
enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
};
inline constexpr int kDTypeCount = 14;

struct DTypeTraits {
  std::string_view name;  ///< "bf16", "q4_k"
  int block_size;         ///< numbers in a block; 1 for plain types
  int block_bytes;        ///< bytes of a block
};

const DTypeTraits& traits(DType dtype) noexcept;
inline std::string_view name(DType dtype) noexcept { return traits(dtype).name; }
inline bool is_quantized(DType dtype) noexcept { return traits(dtype).block_size > 1; }

/// Bytes of `count` numbers; `count` must be a multiple of the block size, and the result must fit 64 bits
/// (file readers check both before they call).
inline uint64_t bytes_of(DType dtype, uint64_t count) noexcept {
  const DTypeTraits& t = traits(dtype);
  return count / static_cast<uint64_t>(t.block_size) * static_cast<uint64_t>(t.block_bytes);
}

/// From a name in any case ("BF16", "bf16", "float32", "bfloat16"); empty when unknown.
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

}  // namespace qwench
