// The micro-kernels of attention on q8_0 cells, for few queries: each cell becomes integer times scale in
// registers, then as attention_tile-inl.h.

#include "kernels/attention_tile-inl.h"

#if defined(QWENCH_KERNELS_ATTENTION_Q8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_ATTENTION_Q8_INL_H_
#undef QWENCH_KERNELS_ATTENTION_Q8_INL_H_
#else
#define QWENCH_KERNELS_ATTENTION_Q8_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// score[i, key] = q[i] . key for MR queries and the 16 keys of one block.
template <int MR>
void ScoresQ8(const float* q, int64_t width, int head_dim, const uint8_t* block, const uint8_t* next,
              float* score) {
  const DF d;
  VF acc[MR * kBlockVectors];
  Unroll<MR * kBlockVectors>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = hn::Zero(d); });
  for (int c = 0; c < head_dim; c += kQ8Block, block += kQ8KeyBytes, next += kQ8KeyBytes) {
    VF scale[kBlockVectors];
    Unroll<kBlockVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      scale[v] = ElementF16::Load(block + v * kStep * 2);
    });
    const uint8_t* integers = block + 2 * kKvBlock;
    for (int i = 0; i < kQ8Block; ++i, integers += kKvBlock) {
      if (i % 4 == 0) hwy::Prefetch(next + 2 * kKvBlock + i * kKvBlock);
      VF key[kBlockVectors];
      Unroll<kBlockVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        key[v] = hn::Mul(ToFloat(LoadSignedBytes(integers + v * kStep)), scale[v]);
      });
      Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
        const VF x = hn::Set(d, q[r * width + c + i]);
        Unroll<kBlockVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          acc[r * kBlockVectors + v] = hn::MulAdd(x, key[v], acc[r * kBlockVectors + v]);
        });
      });
    }
  }
  Unroll<MR * kBlockVectors>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::StoreU(acc[i], d, score + i / kBlockVectors * kKeyTile + i % kBlockVectors * kStep);
  });
}

// As WeightedSum, for the 16 columns from `column` on.
template <int MR>
void WeightedSumQ8(const float* weights, const Tile& tile, int64_t row_bytes, int64_t column, Seen seen,
                   const float* rescale, float* sum, int64_t width) {
  const DF d;
  VF acc[MR * kBlockVectors];
  Unroll<MR * kBlockVectors>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const VF before = hn::LoadU(d, sum + i / kBlockVectors * width + column + i % kBlockVectors * kStep);
    acc[i] = hn::Mul(before, hn::Set(d, rescale[i / kBlockVectors]));
  });
  const int64_t offset = column / kQ8Block * kQ8ValueBytes;
  for (int key = seen.begin; key < seen.end; ++key) {
    const int64_t at = key % kKvBlock * row_bytes + offset;
    const uint8_t* cells = tile.values[key / kKvBlock] + at;
    hwy::Prefetch(tile.next_values[key / kKvBlock] + at);
    const VF scale = hn::Set(d, f16_to_f32(load_unaligned<uint16_t>(cells)));
    const uint8_t* integers = cells + 2 + column % kQ8Block;
    VF value[kBlockVectors];
    Unroll<kBlockVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      value[v] = hn::Mul(ToFloat(LoadSignedBytes(integers + v * kStep)), scale);
    });
    Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
      const VF weight = hn::Set(d, weights[r * kKeyTile + key]);
      Unroll<kBlockVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        acc[r * kBlockVectors + v] = hn::MulAdd(weight, value[v], acc[r * kBlockVectors + v]);
      });
    });
  }
  Unroll<MR * kBlockVectors>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::StoreU(acc[i], d, sum + i / kBlockVectors * width + column + i % kBlockVectors * kStep);
  });
}

template <int MR>
void StripScoresQ8(const float* q, int64_t width, int head_dim, const Tile& tile, int first, int last,
                   float* score) {
  for (int b = first; b < last; ++b)
    ScoresQ8<MR>(q, width, head_dim, tile.keys[b], tile.next_keys[b], score + b * kKvBlock);
}

template <int MR>
void StripValuesQ8(const float* weights, const Tile& tile, int64_t head_dim, Seen seen, const float* rescale,
                   float* sum, int64_t width) {
  const int64_t row_bytes = head_dim / kQ8Block * kQ8ValueBytes;
  for (int64_t c = 0; c < width; c += kKvBlock)
    WeightedSumQ8<MR>(weights, tile, row_bytes, c, seen, rescale, sum, width);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
