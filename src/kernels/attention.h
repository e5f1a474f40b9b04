#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kv_cells.h"
#include "qwench/dtype.h"

namespace qwench {

/// Keys in one step of the online softmax, and in one part of a sequence: both are counted from position 0.
inline constexpr int kKeyTile = 64;
inline constexpr int kKeyPart = 1024;

/// Causal grouped-query attention over a paged cache. Query head h reads kv head h / (heads / kv_heads).
struct AttentionArgs {
  const float* q = nullptr;      // [rows, heads * head_dim]
  int64_t q_stride = 0;          // floats
  float* out = nullptr;          // [rows, heads * head_dim]
  int64_t out_stride = 0;        // floats
  const std::byte* k = nullptr;  // one layer: [blocks, kv_heads] of blocks as kv_cells.h has them
  const std::byte* v = nullptr;
  DType cell = DType::f32;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int window = 0;                        // a row at position p sees (p - window, p]; 0: all up to p
  int first_row = 0;                     // the sequence's rows in q and out
  int first_position = 0;                // of the first row
  const int32_t* block_table = nullptr;  // position p lies in block block_table[p / kKvBlock]
};

/// The query vectors [begin, end) of one kv head. Query vector i is row i / group and head kv_head * group +
/// i % group, where group = heads / kv_heads.
struct AttentionQueries {
  int kv_head = 0;
  int begin = 0;
  int end = 0;
};

/// The parts of a sequence, from kKeyPart keys each, that these queries see something of: [first, last).
struct AttentionParts {
  int first;
  int last;
};
AttentionParts attention_parts(const AttentionArgs& args, const AttentionQueries& queries);

/// A thread's memory for attention.
class AttentionScratch {
 public:
  /// Query vectors that are worked on together: enough that unpacking a tile of keys and values costs little
  /// beside them, few enough that all lies in the L2 cache (250 KB at a head_dim of 128).
  static constexpr int kQueries = 144;

  explicit AttentionScratch(int head_dim);

  int64_t width;             // head_dim padded to a multiple of 16
  std::vector<float> query;  // [kQueries, width], multiplied with 1 / sqrt(head_dim)
  std::vector<float> key;    // [kKeyTile / kKvBlock, head_dim, kKvBlock]
  std::vector<float> value;  // [kKeyTile, width]
  std::vector<float> score;  // [kQueries, kKeyTile]
  std::vector<float> part;   // [kQueries, width]: a part's weighted values
  std::vector<float> sum;    // [kQueries, width]: those of all parts so far
};

/// Computes the outputs of at most kQueries query vectors.
///
/// A row's arithmetic is the same whatever is computed beside it. The keys of one part are taken in tiles, in
/// ascending order (online softmax: Milakov & Gimelshein 2018, arXiv:1805.02867); the parts' results are then
/// merged in ascending order (as Dao et al. 2023, "Flash-Decoding"). A tile or a part of which a row sees no
/// key does not count for it, and values that it does not see are not read.
void attention(const AttentionArgs& args, const AttentionQueries& queries, AttentionScratch& scratch);

/// Floats of one query vector's result of one part.
constexpr int64_t attention_part_size(int64_t width) { return width + 2; }

/// The same in two steps, so that threads can share a long sequence: computes one part into `result`
/// [queries, attention_part_size(scratch.width)], and merges those of all parts from `parts.first` on,
/// `results` [parts, queries, attention_part_size], into the outputs.
void attention_part(const AttentionArgs& args, const AttentionQueries& queries, int part,
                    AttentionScratch& scratch, float* result);
void attention_merge(const AttentionArgs& args, const AttentionQueries& queries, const float* results,
                     AttentionScratch& scratch);

}  // namespace qwench
