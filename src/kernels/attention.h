#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qwench/dtype.h"

namespace qwench {

/// Positions in one block of the paged cache, and in one step of the online softmax.
inline constexpr int kKvBlock = 16;
inline constexpr int kKeyTile = 64;

/// Causal grouped-query attention over a paged cache. Query head h reads kv head h / (heads / kv_heads).
struct AttentionArgs {
  const float* q = nullptr;      // [rows, heads * head_dim]
  int64_t q_stride = 0;          // floats
  float* out = nullptr;          // [rows, heads * head_dim]
  int64_t out_stride = 0;        // floats
  const std::byte* k = nullptr;  // one layer: [blocks, kv_heads, kKvBlock, head_dim]
  const std::byte* v = nullptr;
  DType cell = DType::f32;  // f32, f16 or bf16
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int window = 0;                        // a row at position p sees (p - window, p]; 0: all up to p
  int first_row = 0;                     // the sequence's rows in q and out
  int first_position = 0;                // of the first row
  const int32_t* block_table = nullptr;  // position p lies in block block_table[p / kKvBlock]
};

/// A thread's memory for attention.
class AttentionScratch {
 public:
  /// Query vectors (a row and a head each) that are worked on together.
  static constexpr int kQueries = 32;

  explicit AttentionScratch(int head_dim);

  int64_t width;             // head_dim padded to a multiple of 16
  std::vector<float> query;  // [kQueries, width]: padding stays zero
  std::vector<float> key;    // [kKeyTile, width]
  std::vector<float> value;  // [kKeyTile, width]
  std::vector<float> score;  // [kQueries, kKeyTile]
  std::vector<float> sum;    // [kQueries, width]: of the weighted values
};

/// Computes the outputs of the query vectors [begin, end) of one kv head, end - begin <= kQueries. Query
/// vector i is row i / group and head kv_head * group + i % group, where group = heads / kv_heads.
///
/// A row's arithmetic is the same whatever is computed beside it: keys are taken in tiles of kKeyTile counted
/// from position 0, in ascending order (online softmax: Milakov & Gimelshein 2018, arXiv:1805.02867); keys a
/// row does not see are not touched for it.
void attention(const AttentionArgs& args, int kv_head, int begin, int end, AttentionScratch& scratch);

}  // namespace qwench
