#pragma once

#include <cstddef>
#include <cstdint>

#include "qwench/dtype.h"

namespace qwench {

/// Positions in one block of the paged cache.
inline constexpr int kKvBlock = 16;

/// Of q8_0 cells: elements that share a scale, bytes of such a piece of a value, and of that of 16 keys.
inline constexpr int kQ8Block = 32;
inline constexpr int kQ8ValueBytes = 2 + kQ8Block;
inline constexpr int kQ8KeyBytes = kKvBlock * kQ8ValueBytes;

/// How the keys or the values of one kv head lie in one block. Values lie as rows, [kKvBlock, head_dim]. Keys
/// lie across, [head_dim, kKvBlock], so that one load takes the same element of many keys and scores need no
/// sums over lanes. With q8_0 cells every 32 elements along head_dim share a scale, as in ggml: values are
/// rows of its blocks; keys have, for each 32 elements, the 16 positions' scales (f16) and then their
/// integers, [32, kKvBlock].
///
/// The types that cells may have: f32, f16, bf16, and q8_0 where head_dim is a multiple of 32. Throws Error
/// (unsupported) that says so for others.
void check_kv_cells(DType cell, int head_dim);

/// Stores x [head_dim] as the key, or the value, of position `slot` of a block: to nearest, ties to even;
/// q8_0's scale is the largest magnitude / 127, NaN where one of the 32 is not finite.
void store_key(DType cell, const float* x, int head_dim, int slot, std::byte* block);
void store_value(DType cell, const float* x, int head_dim, int slot, std::byte* block);

/// The block's keys as f32 [head_dim, kKvBlock].
void unpack_keys(DType cell, const std::byte* block, int head_dim, float* dst);
/// The first `count` values as f32 [count, head_dim], rows `stride` floats apart.
void unpack_values(DType cell, const std::byte* block, int head_dim, int count, int64_t stride, float* dst);

}  // namespace qwench
