#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/attention_q8-inl.h"
#include "kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// So few queries are computed on the cells as they are: unpacking a tile for them would cost more than it
// saves.
constexpr int kFew = 2 * kStrip;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The micro-kernels for strips of 1 to kStrip queries.
struct Kernels {
  using ScoresFunction = void (*)(const float*, int64_t, int, const Tile&, int, int, float*);
  using ValuesFunction = void (*)(const float*, const Tile&, int64_t, Seen, const float*, float*, int64_t);
  std::array<ScoresFunction, kStrip> scores;
  std::array<ValuesFunction, kStrip> values;
};

template <class Element, CellsFrom kFrom, int... I>
constexpr Kernels MakeKernels(std::integer_sequence<int, I...>) {
  return {{&StripScores<Element, kFrom, I + 1>...}, {&StripValues<Element, kFrom, I + 1>...}};
}
template <class Element, CellsFrom kFrom>
constexpr Kernels kKernels = MakeKernels<Element, kFrom>(std::make_integer_sequence<int, kStrip>());

template <int... I>
constexpr Kernels MakeQ8Kernels(std::integer_sequence<int, I...>) {
  return {{&StripScoresQ8<I + 1>...}, {&StripValuesQ8<I + 1>...}};
}
constexpr Kernels kQ8Kernels = MakeQ8Kernels(std::make_integer_sequence<int, kStrip>());

const Kernels& KernelsOnCells(DType cell) {
  if (cell == DType::q8_0) return kQ8Kernels;
  if (cell == DType::f16) return kKernels<ElementF16, CellsFrom::memory>;
  if (cell == DType::bf16) return kKernels<ElementBf16, CellsFrom::memory>;
  return kKernels<ElementF32, CellsFrom::memory>;
}

// One query's running state of the online softmax.
struct Online {
  float highest = kMinusInfinity;  // of the scores so far
  float total = 0.0F;              // of the weights, exp(score - highest)

  bool empty() const { return highest == kMinusInfinity && total == 0.0F; }
};

float Exp(float x) {
  return hn::GetLane(ExpNonPositive(hn::CappedTag<float, 1>(), hn::Set(hn::CappedTag<float, 1>(), x)));
}

// Turns a tile's scores into weights, 0 for keys that are not seen; returns what the sums so far are to be
// multiplied with.
float Softmax(float* score, Seen seen, Online& state) {
  const DF d;
  std::fill(score, score + seen.begin, kMinusInfinity);
  std::fill(score + seen.end, score + kKeyTile, kMinusInfinity);
  VF highest = hn::LoadU(d, score);
  for (int i = static_cast<int>(kLanes); i < kKeyTile; i += static_cast<int>(kLanes))
    highest = hn::Max(highest, hn::LoadU(d, score + i));
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
  const float rescale = Exp(before - state.highest);
  state.total = state.total * rescale + SumLanes(sum);
  return rescale;
}

// A piece of work: some query vectors of one kv head.
class Piece {
 public:
  Piece(const AttentionArgs& args, const AttentionQueries& queries, AttentionScratch& scratch)
      : a_(args),
        s_(scratch),
        kv_head_(queries.kv_head),
        begin_(queries.begin),
        count_(queries.end - queries.begin),
        group_(args.heads / args.kv_heads),
        oldest_(args.window > 0 ? std::max(0, Position(0) - args.window + 1) : 0),
        context_(Position(count_ - 1) + 1),
        head_bytes_(kKvBlock *
                    static_cast<int64_t>(bytes_of(args.cell, static_cast<uint64_t>(args.head_dim)))),
        on_cells_((count_ <= kFew || args.cell == DType::f32) && args.head_dim % kKvBlock == 0),
        kernels_(count_ <= kFew && on_cells_ ? KernelsOnCells(args.cell)
                                             : kKernels<ElementF32, CellsFrom::cache>) {}

  void LoadQueries() {
    const float scale = 1.0F / std::sqrt(static_cast<float>(a_.head_dim));
    for (int i = 0; i < count_; ++i) {
      const float* q = a_.q + Row(i) * a_.q_stride + HeadOffset(i);
      float* scaled = s_.query.data() + i * s_.width;
      for (int c = 0; c < a_.head_dim; ++c) scaled[c] = q[c] * scale;
    }
  }

  // One part, into s_.part and `states`.
  void ComputePart(int part, Online* states) {
    std::fill_n(s_.part.data(), count_ * s_.width, 0.0F);
    std::fill_n(states, count_, Online());
    const int end = std::min((part + 1) * kKeyPart, context_);
    for (int first = std::max(part * kKeyPart, oldest_ / kKeyTile * kKeyTile); first < end; first += kKeyTile)
      ComputeTile(first, states);
  }

  // Adds a part's result to that of the parts before it.
  void Merge(int i, const float* part, const Online& of_part, Online& state) {
    if (of_part.empty()) return;
    float* sum = s_.sum.data() + i * s_.width;
    if (state.empty()) {
      std::copy_n(part, s_.width, sum);
      state = of_part;
      return;
    }
    const float highest = std::max(state.highest, of_part.highest);
    const float old_factor = Exp(state.highest - highest);
    const float new_factor = Exp(of_part.highest - highest);
    state = {highest, state.total * old_factor + of_part.total * new_factor};
    const DF d;
    for (int64_t c = 0; c < s_.width; c += kStep) {
      const VF before = hn::Mul(hn::LoadU(d, sum + c), hn::Set(d, old_factor));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, part + c), hn::Set(d, new_factor), before), d, sum + c);
    }
  }

  void Store(int i, const Online& state) {
    const float* sum = s_.sum.data() + i * s_.width;
    float* out = a_.out + Row(i) * a_.out_stride + HeadOffset(i);
    for (int c = 0; c < a_.head_dim; ++c) out[c] = sum[c] / state.total;
  }

  int count() const { return count_; }

 private:
  int Position(int i) const { return a_.first_position + (begin_ + i) / group_; }
  int64_t Row(int i) const { return a_.first_row + (begin_ + i) / group_; }
  int64_t HeadOffset(int i) const { return int64_t{kv_head_ * group_ + (begin_ + i) % group_} * a_.head_dim; }

  Seen SeenOf(int i, int first_key) const {
    const int position = Position(i);
    const int oldest = a_.window > 0 ? std::max(0, position - a_.window + 1) : 0;
    const Seen seen{std::max(0, oldest - first_key), std::min(kKeyTile, position + 1 - first_key)};
    return seen.begin < seen.end ? seen : Seen{0, 0};
  }

  const std::byte* BlockOf(const std::byte* cells, int key) const {
    return cells + (int64_t{a_.block_table[key / kKvBlock]} * a_.kv_heads + kv_head_) * head_bytes_;
  }

  // The tile's cells themselves, or unpacked copies of them.
  Tile TileAt(int first) const {
    Tile tile;
    for (int b = 0; b < kTileBlocks; ++b) {
      // Where there is none, one that is: it is fetched ahead, but not computed with.
      const int key = std::min(first + b * kKvBlock, context_ - 1);
      const int next = std::min(first + kKeyTile + b * kKvBlock, context_ - 1);
      const std::byte* keys = BlockOf(a_.k, key);
      const std::byte* values = BlockOf(a_.v, key);
      tile.next_keys[b] = reinterpret_cast<const uint8_t*>(BlockOf(a_.k, next));
      tile.next_values[b] = reinterpret_cast<const uint8_t*>(BlockOf(a_.v, next));
      if (!on_cells_) {
        float* unpacked_keys = s_.key.data() + int64_t{b} * kKvBlock * a_.head_dim;
        float* unpacked_values = s_.value.data() + int64_t{b} * kKvBlock * s_.width;
        if (const int count = std::min(kKvBlock, context_ - (first + b * kKvBlock)); count > 0) {
          unpack_keys(a_.cell, keys, a_.head_dim, unpacked_keys);
          unpack_values(a_.cell, values, a_.head_dim, count, s_.width, unpacked_values);
        }
        keys = reinterpret_cast<const std::byte*>(unpacked_keys);
        values = reinterpret_cast<const std::byte*>(unpacked_values);
      }
      tile.keys[b] = reinterpret_cast<const uint8_t*>(keys);
      tile.values[b] = reinterpret_cast<const uint8_t*>(values);
    }
    return tile;
  }

  void ComputeTile(int first, Online* states) {
    const Tile tile = TileAt(first);
    const int strips = (count_ + kStrip - 1) / kStrip;
    for (int strip = 0; strip < strips; ++strip) {
      if (!on_cells_) FetchAhead(tile, strip, strips);
      const int begin = count_ * strip / strips;
      ComputeStrip(tile, first, begin, count_ * (strip + 1) / strips - begin, states);
    }
  }

  // A share of the next tile's cells, which are unpacked as they come from memory.
  void FetchAhead(const Tile& tile, int share, int shares) const {
    constexpr int64_t kLine = 64;
    const int64_t lines = (head_bytes_ + kLine - 1) / kLine;
    const int64_t all = lines * kTileBlocks;
    for (int64_t i = all * share / shares; i < all * (share + 1) / shares; ++i) {
      hwy::Prefetch(tile.next_keys[i / lines] + i % lines * kLine);
      hwy::Prefetch(tile.next_values[i / lines] + i % lines * kLine);
    }
  }

  void ComputeStrip(const Tile& tile, int first, int strip, int rows, Online* states) {
    Seen seen[kStrip];
    Seen any{kKeyTile, 0};
    Seen all{0, kKeyTile};
    for (int i = 0; i < rows; ++i) {
      seen[i] = SeenOf(strip + i, first);
      all = {std::max(all.begin, seen[i].begin), std::min(all.end, seen[i].end)};
      if (seen[i].end > 0) any = {std::min(any.begin, seen[i].begin), std::max(any.end, seen[i].end)};
    }
    if (any.begin >= any.end) return;
    float* score = s_.score.data() + int64_t{strip} * kKeyTile;
    kernels_.scores[static_cast<size_t>(rows - 1)](s_.query.data() + strip * s_.width, s_.width, a_.head_dim,
                                                   tile, any.begin / kKvBlock,
                                                   (any.end + kKvBlock - 1) / kKvBlock, score);
    float rescale[kStrip];
    for (int i = 0; i < rows; ++i) {
      rescale[i] = 1.0F;
      if (seen[i].end > 0) rescale[i] = Softmax(score + i * kKeyTile, seen[i], states[strip + i]);
    }
    // Together what all see, by itself what only some do: a value that a row does not see may be anything.
    if (all.begin >= all.end) all = {kKeyTile, kKeyTile};
    const auto add = [&](int i, int count, Seen keys) {
      if (keys.begin >= keys.end) return;
      kernels_.values[static_cast<size_t>(count - 1)](score + i * kKeyTile, tile,
                                                      on_cells_ ? a_.head_dim : s_.width, keys, rescale + i,
                                                      s_.part.data() + (strip + i) * s_.width, s_.width);
      std::fill_n(rescale + i, count, 1.0F);
    };
    for (int i = 0; i < rows; ++i) add(i, 1, {seen[i].begin, std::min(all.begin, seen[i].end)});
    add(0, rows, all);
    for (int i = 0; i < rows; ++i) add(i, 1, {std::max(all.end, seen[i].begin), seen[i].end});
  }

  const AttentionArgs& a_;
  AttentionScratch& s_;
  const int kv_head_;
  const int begin_;
  const int count_;
  const int group_;
  const int oldest_;   // the first key that any of the queries sees
  const int context_;  // one behind the last
  const int64_t head_bytes_;
  // The cells are computed on as they are.
  const bool on_cells_;
  const Kernels& kernels_;
};

void Attention(const AttentionArgs& args, const AttentionQueries& queries, AttentionScratch& scratch) {
  Piece piece(args, queries, scratch);
  piece.LoadQueries();
  Online states[AttentionScratch::kQueries];
  Online of_part[AttentionScratch::kQueries];
  const AttentionParts parts = attention_parts(args, queries);
  for (int part = parts.first; part < parts.last; ++part) {
    piece.ComputePart(part, of_part);
    for (int i = 0; i < piece.count(); ++i)
      piece.Merge(i, scratch.part.data() + i * scratch.width, of_part[i], states[i]);
  }
  for (int i = 0; i < piece.count(); ++i) piece.Store(i, states[i]);
}

void AttentionPart(const AttentionArgs& args, const AttentionQueries& queries, int part,
                   AttentionScratch& scratch, float* result) {
  Piece piece(args, queries, scratch);
  piece.LoadQueries();
  Online states[AttentionScratch::kQueries];
  piece.ComputePart(part, states);
  for (int i = 0; i < piece.count(); ++i, result += attention_part_size(scratch.width)) {
    std::copy_n(scratch.part.data() + i * scratch.width, scratch.width, result);
    result[scratch.width] = states[i].highest;
    result[scratch.width + 1] = states[i].total;
  }
}

void AttentionMerge(const AttentionArgs& args, const AttentionQueries& queries, const float* results,
                    AttentionScratch& scratch) {
  Piece piece(args, queries, scratch);
  Online states[AttentionScratch::kQueries];
  const AttentionParts parts = attention_parts(args, queries);
  for (int part = parts.first; part < parts.last; ++part) {
    for (int i = 0; i < piece.count(); ++i, results += attention_part_size(scratch.width))
      piece.Merge(i, results, {results[scratch.width], results[scratch.width + 1]}, states[i]);
  }
  for (int i = 0; i < piece.count(); ++i) piece.Store(i, states[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(Attention);
HWY_EXPORT(AttentionPart);
HWY_EXPORT(AttentionMerge);

AttentionScratch::AttentionScratch(int head_dim)
    : width((head_dim + 15) / 16 * 16),
      query(static_cast<size_t>(kQueries * width)),
      key(static_cast<size_t>(kKeyTile * width)),
      value(key.size()),
      score(size_t{kQueries} * kKeyTile),
      part(query.size()),
      sum(query.size()) {}

AttentionParts attention_parts(const AttentionArgs& args, const AttentionQueries& queries) {
  const int group = args.heads / args.kv_heads;
  const int first_position = args.first_position + queries.begin / group;
  const int last_position = args.first_position + (queries.end - 1) / group;
  const int oldest = args.window > 0 ? std::max(0, first_position - args.window + 1) : 0;
  return {oldest / kKeyPart, last_position / kKeyPart + 1};
}

void attention(const AttentionArgs& args, const AttentionQueries& queries, AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(Attention)(args, queries, scratch);
}

void attention_part(const AttentionArgs& args, const AttentionQueries& queries, int part,
                    AttentionScratch& scratch, float* result) {
  HWY_DYNAMIC_DISPATCH(AttentionPart)(args, queries, part, scratch, result);
}

void attention_merge(const AttentionArgs& args, const AttentionQueries& queries, const float* results,
                     AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttentionMerge)(args, queries, results, scratch);
}

}  // namespace qwench
#endif
