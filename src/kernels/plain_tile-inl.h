// Products of rows of x with panels of plain weights (plain_panels.h), once per instruction set. Every output
// is one chain of fused multiply-adds over a chunk of k in ascending order, a lane each, whatever the number
// of rows and the width of the vectors.

#include <array>
#include <utility>

#include "kernels/linear.h"
#include "kernels/plain_panels.h"
#include "kernels/prefetch.h"
#include "kernels/simd-inl.h"

#if defined(QWENCH_KERNELS_PLAIN_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_PLAIN_TILE_INL_H_
#undef QWENCH_KERNELS_PLAIN_TILE_INL_H_
#else
#define QWENCH_KERNELS_PLAIN_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

constexpr int kPanelOuts = static_cast<int>(kPlainPanelRows);
// Vectors of f32 that hold a number of each row of a panel.
constexpr int kPanelWidth = kPanelOuts / static_cast<int>(kLanes);
static_assert(kPanelOuts % static_cast<int>(kLanes) == 0);

// Widened weights are used by tiles of kTileRows rows of x and kTileOuts columns. A tile's sums must cover
// the latency of a fused multiply-add (4 cycles, 2 a cycle: at least 8) and leave registers for a number of x
// and the weights: 12 + 1 + 2 of 16, 24 + 1 + 2 or 4 of 32.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kTileRows = 12;
constexpr int kTilePanels = 2;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 6;
constexpr int kTilePanels = 1;
#else
constexpr int kTileRows = 3;
constexpr int kTilePanels = 1;
#endif
constexpr int kTileOuts = kTilePanels * kPanelOuts;
constexpr int kTileWidth = kTilePanels * kPanelWidth;

// The columns of one panel, or fewer where [begin, end) cuts it.
struct Columns {
  int64_t from;
  int64_t to;
};

HWY_INLINE Columns columns_of(int64_t n, int64_t outs, int64_t begin, int64_t end) {
  return {std::max(n, begin), std::min(n + outs, end)};
}

// A line of a panel as f32, kNumbers numbers of each row: Load(line, v, out) gives those of the rows [v *
// kLanes, (v + 1) * kLanes), and Last the same of a panel's last numbers.
struct LineF32 {
  static constexpr int kNumbers = 1;
  static HWY_INLINE void Load(const uint8_t* line, int v, VF* out) {
    out[0] = LoadAnywhere(DF(), line + v * kStep * 4);
  }
};

struct LineF16 {
  static constexpr int kNumbers = 2;
  static HWY_INLINE void Load(const uint8_t* line, int v, VF* out) {
    out[0] = ElementF16::Load(line + v * kStep * 2);
    out[1] = ElementF16::Load(line + kPlainPanelRows * 2 + v * kStep * 2);
  }
};

struct LineBf16 {
  static constexpr int kNumbers = 2;
  static HWY_INLINE void Load(const uint8_t* line, int v, VF* out) {
    const auto pairs = LoadAnywhere(DU(), line + v * kStep * 4);
    out[0] = hn::BitCast(DF(), hn::ShiftLeft<16>(pairs));
    out[1] = hn::BitCast(DF(), hn::And(pairs, hn::Set(DU(), 0xFFFF0000U)));
  }
};

// Adds x[r] . row over k < n of one chunk to sums[r][row], for MR rows of x and the 16 rows of a panel, or
// stores it where the chunk is the first.
template <class Line, int MR>
HWY_NOINLINE void ChunkTimesRows(const uint8_t* panel, int64_t n, const float* x, int64_t x_stride,
                                 bool first, float (*sums)[kPanelOuts]) {
  const float* rows[MR];
  for (int r = 0; r < MR; ++r) rows[r] = x + r * x_stride;
  VF acc[MR * kPanelWidth];
  Unroll<MR * kPanelWidth>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = hn::Zero(DF()); });
  for (int64_t k = 0; k < n; k += Line::kNumbers, panel += kPlainLineBytes) {
    fetch_ahead(panel + kAheadOfReads);
    VF w[kPanelWidth][Line::kNumbers];
    Unroll<kPanelWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) { Line::Load(panel, v, w[v]); });
    Unroll<Line::kNumbers>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
        const VF of_x = hn::Set(DF(), rows[r][k + i]);
        Unroll<kPanelWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          acc[r * kPanelWidth + v] = hn::MulAdd(of_x, w[v][i], acc[r * kPanelWidth + v]);
        });
      });
    });
  }
  Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    Unroll<kPanelWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      float* to = sums[r] + v * kStep;
      const VF sum = acc[r * kPanelWidth + v];
      hn::StoreU(first ? sum : hn::Add(hn::LoadU(DF(), to), sum), DF(), to);
    });
  });
}

using ChunkFunction = void (*)(const uint8_t*, int64_t, const float*, int64_t, bool, float (*)[kPanelOuts]);

template <class Line, int... I>
constexpr std::array<ChunkFunction, sizeof...(I)> chunk_functions(std::integer_sequence<int, I...>) {
  return {&ChunkTimesRows<Line, I + 1>...};
}

// Widens `lines` lines of a panel: to[k * kTileOuts + row].
template <class Line>
HWY_NOINLINE void Widen(const uint8_t* panel, int64_t lines, float* to) {
  for (int64_t i = 0; i < lines; ++i, panel += kPlainLineBytes, to += Line::kNumbers * kTileOuts) {
    Unroll<kPanelWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      VF w[Line::kNumbers];
      Line::Load(panel, v, w);
      Unroll<Line::kNumbers>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
        hn::StoreU(w[n], DF(), to + n * kTileOuts + v * kStep);
      });
    });
  }
}

// Weights that are read next, of each panel of a tile: fetched while this one is computed, `step` bytes for
// every kFetchEvery numbers.
struct Ahead {
  const uint8_t* panels[kTilePanels];
  int64_t step;
};
constexpr int64_t kFetchEvery = 2;

// sums[r][column] = x[r] . column over k < n of one chunk, for MR rows of x, kLinearChunk floats apart, and
// widened weights [k][kTileOuts]; n is even but for the last chunk.
template <int MR>
HWY_NOINLINE void WidenedTile(const float* x, const float* w, int64_t n, const Ahead& ahead,
                              float (*sums)[kTileOuts]) {
  VF acc[MR * kTileWidth];
  Unroll<MR * kTileWidth>([&](auto i) HWY_ATTR __attribute__((always_inline)) { acc[i] = hn::Zero(DF()); });
  const auto step = [&](int64_t k) HWY_ATTR __attribute__((always_inline)) {
    VF of_w[kTileWidth];
    Unroll<kTileWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      of_w[v] = hn::LoadU(DF(), w + k * kTileOuts + v * kStep);
    });
    Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
      const VF of_x = hn::Set(DF(), x[r * kLinearChunk + k]);
      Unroll<kTileWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        acc[r * kTileWidth + v] = hn::MulAdd(of_x, of_w[v], acc[r * kTileWidth + v]);
      });
    });
  };
  int64_t k = 0;
  for (; k + kFetchEvery <= n; k += kFetchEvery) {
    Unroll<kTilePanels>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
      fetch_ahead(ahead.panels[p] + k / kFetchEvery * ahead.step);
    });
    Unroll<static_cast<int>(kFetchEvery)>([&](auto i) HWY_ATTR
                                          __attribute__((always_inline)) { step(k + i); });
  }
  for (; k < n; ++k) step(k);
  Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    Unroll<kTileWidth>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      hn::StoreU(acc[r * kTileWidth + v], DF(), sums[r] + v * kStep);
    });
  });
}

using WidenedTileFunction = void (*)(const float*, const float*, int64_t, const Ahead&, float (*)[kTileOuts]);

// Tiles of 1 to kTileRows rows.
template <int... I>
constexpr std::array<WidenedTileFunction, kTileRows> widened_tiles(std::integer_sequence<int, I...>) {
  return {&WidenedTile<I + 1>...};
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
