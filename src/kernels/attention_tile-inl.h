// The micro-kernels of attention, once per instruction set: a few query vectors with one tile of keys and
// values. Every sum is one chain of fused multiply-adds in ascending order, so that a tile's shape changes
// nothing in it.

#include <atomic>

#include "hwy/cache_control.h"
#include "kernels/attention.h"
#include "kernels/simd-inl.h"

#if defined(QWENCH_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_ATTENTION_TILE_INL_H_
#undef QWENCH_KERNELS_ATTENTION_TILE_INL_H_
#else
#define QWENCH_KERNELS_ATTENTION_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Query vectors of one strip. Its accumulators, rows times vectors, must cover the latency of a fused
// multiply-add (4 cycles, 2 a cycle: at least 8) and leave registers for a broadcast and a row of the tile.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kRegisters = 32;
constexpr int kStrip = 12;
#elif HWY_TARGET == HWY_NEON
constexpr int kRegisters = 32;
constexpr int kStrip = 6;
#elif HWY_TARGET == HWY_AVX2
constexpr int kRegisters = 16;
constexpr int kStrip = 6;
#else
constexpr int kRegisters = 16;
constexpr int kStrip = kLanes > 1 ? 2 : 1;
#endif
constexpr int kBlockVectors = kKvBlock / static_cast<int>(kLanes);  // of 16 elements
constexpr int kTileBlocks = kKeyTile / kKvBlock;

// How many times 16 columns a strip of this many rows takes at once: as many as there are registers for.
constexpr int ColumnBlocks(int rows) {
  int blocks = 1;
  while (2 * blocks <= kTileBlocks && 2 * blocks * kBlockVectors * (rows + 1) + 1 <= kRegisters) blocks *= 2;
  return blocks;
}

// Where a tile's cells lie, most likely: those in memory are fetched a tile ahead.
enum class CellsFrom { memory, cache };

// One tile: its blocks of keys and of values, and those of the next one, which are fetched meanwhile.
struct Tile {
  const uint8_t* keys[kTileBlocks];
  const uint8_t* values[kTileBlocks];
  const uint8_t* next_keys[kTileBlocks];
  const uint8_t* next_values[kTileBlocks];
};

// score[i, key] = q[i] . key for MR queries and the 16 * NB keys of NB blocks.
template <class Element, CellsFrom kFrom, int MR, int NB>
void Scores(const float* q, int64_t width, int head_dim, const uint8_t* const* keys,
            const uint8_t* const* next, float* score) {
  constexpr int NV = NB * kBlockVectors;
  const DF d;
  VF acc[MR * NV];
  Unroll<MR * NV>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = hn::Zero(d); });
  const float* rows[MR];
  for (int i = 0; i < MR; ++i) rows[i] = q + i * width;
  const uint8_t* blocks[NB];
  for (int b = 0; b < NB; ++b) blocks[b] = keys[b];
  const auto step = [&](int64_t c) HWY_ATTR __attribute__((always_inline)) {
    VF key[NV];
    Unroll<NV>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      const int64_t at = c * kKvBlock + (v % kBlockVectors) * kStep;
      key[v] = Element::Load(blocks[v / kBlockVectors] + at * Element::kBytes);
    });
    Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      const VF x = hn::Set(d, rows[i][c]);
      // Keeps the compiler from loading the keys again for each row: loads would be the bottleneck.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      Unroll<NV>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        acc[i * NV + v] = hn::MulAdd(x, key[v], acc[i * NV + v]);
      });
    });
  };
  if constexpr (kFrom == CellsFrom::memory) {
    // Steps that go through one cache line of a block.
    constexpr int kLine = static_cast<int>(64 / (kKvBlock * Element::kBytes));
    int64_t c = 0;
    for (; c + kLine <= head_dim; c += kLine) {
      Unroll<NB>([&](auto b) HWY_ATTR
                 __attribute__((always_inline)) { hwy::Prefetch(next[b] + c * kKvBlock * Element::kBytes); });
      Unroll<kLine>([&](auto s) HWY_ATTR __attribute__((always_inline)) { step(c + s); });
    }
    for (; c < head_dim; ++c) step(c);
  } else {
    for (int64_t c = 0; c < head_dim; ++c) step(c);
  }
  Unroll<MR * NV>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::StoreU(acc[i], d, score + i / NV * kKeyTile + i % NV * kStep);
  });
}

// The keys of one tile that a query sees: [begin, end), counted from the tile's first.
struct Seen {
  int begin;
  int end;
};

// sum[i] = sum[i] * rescale[i] + the weighted values of the keys `seen`, for MR queries and the 16 * NB
// columns from `column` on. value_stride: elements from one value to the next.
template <class Element, CellsFrom kFrom, int MR, int NB>
void WeightedSum(const float* weights, const uint8_t* const* values, const uint8_t* const* next,
                 int64_t value_stride, int64_t column, Seen seen, const float* rescale, float* sum,
                 int64_t width) {
  constexpr int NV = NB * kBlockVectors;
  const DF d;
  VF acc[MR * NV];
  Unroll<MR * NV>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const VF before = hn::LoadU(d, sum + i / NV * width + column + i % NV * kStep);
    acc[i] = hn::Mul(before, hn::Set(d, rescale[i / NV]));
  });
  const int64_t row_bytes = value_stride * Element::kBytes;
  for (int key = seen.begin; key < seen.end;) {
    const int block = key / kKvBlock;
    const int end = std::min(seen.end, (block + 1) * kKvBlock);
    const int64_t offset = (key % kKvBlock) * row_bytes + column * Element::kBytes;
    const uint8_t* row = values[block] + offset;
    const uint8_t* ahead = next[block] + offset;
    for (; key < end; ++key, row += row_bytes, ahead += row_bytes) {
      if constexpr (kFrom == CellsFrom::memory) {
        for (int64_t line = 0; line < NB * kKvBlock * Element::kBytes; line += 64)
          hwy::Prefetch(ahead + line);
      }
      VF value[NV];
      Unroll<NV>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        value[v] = Element::Load(row + v * kStep * Element::kBytes);
      });
      Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
        const VF weight = hn::Set(d, weights[i * kKeyTile + key]);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // as in Scores
        Unroll<NV>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          acc[i * NV + v] = hn::MulAdd(weight, value[v], acc[i * NV + v]);
        });
      });
    }
  }
  Unroll<MR * NV>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::StoreU(acc[i], d, sum + i / NV * width + column + i % NV * kStep);
  });
}

// Scores of a strip of MR queries with the tile's blocks [first, last).
template <class Element, CellsFrom kFrom, int MR>
void StripScores(const float* q, int64_t width, int head_dim, const Tile& tile, int first, int last,
                 float* score) {
  constexpr int NB = ColumnBlocks(MR);
  int b = first;
  for (; b + NB <= last; b += NB) {
    Scores<Element, kFrom, MR, NB>(q, width, head_dim, tile.keys + b, tile.next_keys + b,
                                   score + b * kKvBlock);
  }
  if constexpr (NB > 1) {
    for (; b < last; ++b) {
      Scores<Element, kFrom, MR, 1>(q, width, head_dim, tile.keys + b, tile.next_keys + b,
                                    score + b * kKvBlock);
    }
  }
}

// The weighted sums of a strip of MR queries that see the same keys.
template <class Element, CellsFrom kFrom, int MR>
void StripValues(const float* weights, const Tile& tile, int64_t value_stride, Seen seen,
                 const float* rescale, float* sum, int64_t width) {
  constexpr int NB = ColumnBlocks(MR);
  int64_t c = 0;
  for (; c + NB * kKvBlock <= width; c += NB * kKvBlock) {
    WeightedSum<Element, kFrom, MR, NB>(weights, tile.values, tile.next_values, value_stride, c, seen,
                                        rescale, sum, width);
  }
  if constexpr (NB > 1) {
    for (; c < width; c += kKvBlock) {
      WeightedSum<Element, kFrom, MR, 1>(weights, tile.values, tile.next_values, value_stride, c, seen,
                                         rescale, sum, width);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
