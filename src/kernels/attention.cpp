#include "kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/targets.h"
#include "kernels/unpack.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The keys of one tile that a query sees: [begin, end), counted from the tile's first.
struct Seen {
  int begin;
  int end;
  bool operator==(const Seen&) const = default;
};

Seen SeenOf(const AttentionArgs& a, int query, int first_key) {
  const int position = a.first_position + query / (a.heads / a.kv_heads);
  const int oldest = a.window > 0 ? std::max(0, position - a.window + 1) : 0;
  const Seen seen{std::max(0, oldest - first_key), std::min(kKeyTile, position + 1 - first_key)};
  return seen.begin < seen.end ? seen : Seen{0, 0};
}

// Keys or values [first, first + count) of one kv head, as f32 rows.
void UnpackTile(const AttentionArgs& a, const std::byte* cells, int kv_head, int first, int count,
                int64_t width, float* rows) {
  const auto cell_bytes = static_cast<int64_t>(traits(a.cell).block_bytes);
  for (int i = 0; i < count; i += kKvBlock) {
    const int64_t block = a.block_table[(first + i) / kKvBlock];
    const std::byte* src = cells + ((block * a.kv_heads + kv_head) * kKvBlock) * a.head_dim * cell_bytes;
    const int n = std::min(kKvBlock, count - i);
    if (width == a.head_dim) {
      unpack(a.cell, src, 0, int64_t{n} * a.head_dim, rows + i * width);
      continue;
    }
    for (int j = 0; j < n; ++j)
      unpack(a.cell, src, int64_t{j} * a.head_dim, a.head_dim, rows + (i + j) * width);
  }
}

// score[query, key] = q k for all queries and the tile's first `keys` keys.
void Scores(AttentionScratch& s, int queries, int keys) {
  HWY_ALIGN float sums[kMostSums];
  for (int i = 0; i < queries; i += kTileRows) {
    const int mr = std::min(kTileRows, queries - i);
    int width = 0;
    for (int j = 0; j < keys; j += width) {
      width = Tiles<ElementF32, WeightsFrom::cache, kTileRows, kTileCols>::run(
          mr, s.query.data() + i * s.width, s.width,
          reinterpret_cast<const uint8_t*>(s.key.data() + j * s.width), s.width * 4, keys - j, s.width, sums);
      for (int r = 0; r < mr; ++r) {
        std::copy_n(sums + r * kTileCols, width, s.score.data() + (i + r) * kKeyTile + j);
      }
    }
  }
}

// One query's running state.
struct Online {
  float highest = kMinusInfinity;
  float total = 0.0F;
  float rescale = 0.0F;  // what the sums so far are multiplied with
};

float Exp(float x) {
  return hn::GetLane(ExpNonPositive(hn::CappedTag<float, 1>(), hn::Set(hn::CappedTag<float, 1>(), x)));
}

// Turns a tile's scores into weights exp(scale * score - highest), 0 for keys that are not seen.
void Softmax(float* score, Seen seen, float scale, Online& state) {
  const DF d;
  VF highest = hn::Set(d, kMinusInfinity);
  const VF factor = hn::Set(d, scale);
  std::fill(score, score + seen.begin, kMinusInfinity);
  std::fill(score + seen.end, score + kKeyTile, kMinusInfinity);
  for (int i = 0; i < kKeyTile; i += static_cast<int>(kLanes)) {
    const VF scaled = hn::Mul(hn::LoadU(d, score + i), factor);
    hn::StoreU(scaled, d, score + i);
    highest = hn::Max(highest, scaled);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::StoreU(highest, d, lanes);
  const float before = state.highest;
  state.highest = std::max(before, *std::max_element(lanes, lanes + kLanes));
  const VF top = hn::Set(d, state.highest);
  VF sum = hn::Zero(d);
  for (int i = 0; i < kKeyTile; i += static_cast<int>(kLanes)) {
    const VF weight = ExpNonPositive(d, hn::Sub(hn::LoadU(d, score + i), top));
    hn::StoreU(weight, d, score + i);
    sum = hn::Add(sum, weight);
  }
  state.rescale = Exp(before - state.highest);
  state.total = state.total * state.rescale + SumLanes(sum);
}

// sum[i] = sum[i] * rescale[i] + weights[i] values for MR queries that see the same keys, NV vectors of each.
template <int MR, int NV>
void WeightedSum(const float* weights, const float* values, int64_t width, Seen seen, const Online* states,
                 float* sum) {
  const DF d;
  VF acc[MR * NV];
  Unroll<MR * NV>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const VF before = hn::LoadU(d, sum + i / NV * width + i % NV * kStep);
    acc[i] = hn::Mul(before, hn::Set(d, states[i / NV].rescale));
  });
  for (int key = seen.begin; key < seen.end; ++key) {
    VF value[NV];
    Unroll<NV>([&](auto j) HWY_ATTR
               __attribute__((always_inline)) { value[j] = hn::LoadU(d, values + key * width + j * kStep); });
    Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      const VF weight = hn::Set(d, weights[i * kKeyTile + key]);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // as in Tile
      Unroll<NV>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
        acc[i * NV + j] = hn::MulAdd(weight, value[j], acc[i * NV + j]);
      });
    });
  }
  Unroll<MR * NV>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::StoreU(acc[i], d, sum + i / NV * width + i % NV * kStep);
  });
}

template <int MR>
void WeightedSums(AttentionScratch& s, int query, Seen seen, const Online* states) {
  const float* weights = s.score.data() + int64_t{query} * kKeyTile;
  float* sum = s.sum.data() + query * s.width;
  int64_t c = 0;
  for (; c + 4 * kStep <= s.width; c += 4 * kStep) {
    WeightedSum<MR, 4>(weights, s.value.data() + c, s.width, seen, states, sum + c);
  }
  for (; c < s.width; c += kStep)
    WeightedSum<MR, 1>(weights, s.value.data() + c, s.width, seen, states, sum + c);
}

void AttentionQueries(const AttentionArgs& a, int kv_head, int begin, int end, AttentionScratch& s) {
  const int group = a.heads / a.kv_heads;
  const int queries = end - begin;
  const auto head_offset = [&](int query) { return int64_t{kv_head * group + query % group} * a.head_dim; };
  for (int i = 0; i < queries; ++i) {
    const int row = a.first_row + (begin + i) / group;
    std::copy_n(a.q + row * a.q_stride + head_offset(begin + i), a.head_dim, s.query.data() + i * s.width);
  }
  std::fill_n(s.sum.data(), queries * s.width, 0.0F);
  Online states[AttentionScratch::kQueries];
  Seen seen[AttentionScratch::kQueries];

  const float scale = 1.0F / std::sqrt(static_cast<float>(a.head_dim));
  const int first_position = a.first_position + begin / group;
  const int context = a.first_position + (end - 1) / group + 1;
  const int oldest = a.window > 0 ? std::max(0, first_position - a.window + 1) : 0;
  for (int first = oldest / kKeyTile * kKeyTile; first < context; first += kKeyTile) {
    const int keys = std::min(kKeyTile, context - first);
    UnpackTile(a, a.k, kv_head, first, keys, s.width, s.key.data());
    UnpackTile(a, a.v, kv_head, first, keys, s.width, s.value.data());
    Scores(s, queries, keys);
    for (int i = 0; i < queries; ++i) {
      seen[i] = SeenOf(a, begin + i, first);
      if (seen[i].end > 0) Softmax(s.score.data() + int64_t{i} * kKeyTile, seen[i], scale, states[i]);
    }
    for (int i = 0; i < queries;) {
      const bool pair = i + 1 < queries && seen[i] == seen[i + 1];
      if (seen[i].end > 0) {
        if (pair) {
          WeightedSums<2>(s, i, seen[i], states + i);
        } else {
          WeightedSums<1>(s, i, seen[i], states + i);
        }
      }
      i += pair ? 2 : 1;
    }
  }
  for (int i = 0; i < queries; ++i) {
    const int row = a.first_row + (begin + i) / group;
    const float* sum = s.sum.data() + i * s.width;
    float* out = a.out + row * a.out_stride + head_offset(begin + i);
    for (int c = 0; c < a.head_dim; ++c) out[c] = sum[c] / states[i].total;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(AttentionQueries);

AttentionScratch::AttentionScratch(int head_dim)
    : width((head_dim + 15) / 16 * 16),
      query(static_cast<size_t>(kQueries * width)),
      key(static_cast<size_t>(kKeyTile * width)),
      value(key.size()),
      score(size_t{kQueries} * kKeyTile),
      sum(query.size()) {}

void attention(const AttentionArgs& args, int kv_head, int begin, int end, AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttentionQueries)(args, kv_head, begin, end, scratch);
}

}  // namespace qwench
#endif
