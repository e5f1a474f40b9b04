#include "kernels/linear.h"

#include <algorithm>

#include "kernels/linear_quantized.h"
#include "kernels/vnni_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/amx_few-inl.h"
#include "kernels/packed_tile-inl.h"
#include "kernels/plain_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Rows of x up to which weights are widened in registers, and how many share that: a vector of 16 lanes has
// all rows of a panel, so that twice as many rows have as many sums.
constexpr int kFusedRows = 8;
constexpr int kRowsTogether = kLanes == 16 ? 8 : 4;
// Rows of x that are used by many panels while a chunk of them is in the L2 cache.
constexpr int64_t kRowBlock = 192;
static_assert(kRowBlock * kLinearChunk + kLinearChunk * kTileOuts <= kLinearScratch);
static_assert(kLinearChunk % 16 == 0);

// Adds a chunk's sums of columns from n on, one row of them, to y, and the bias with the last chunk.
HWY_INLINE void Accumulate(const LinearArgs& a, int64_t row, int64_t n, Columns columns, int64_t k,
                           const float* sums) {
  const bool last = k + kLinearChunk >= a.cols;
  float* y = a.y + row * a.y_stride;
  const auto add = [&](auto d, int64_t j) HWY_ATTR __attribute__((always_inline)) {
    auto sum = hn::LoadU(d, sums + (j - n));
    if (k > 0) sum = hn::Add(hn::LoadU(d, y + j), sum);
    if (last && a.bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, a.bias + j));
    hn::StoreU(sum, d, y + j);
  };
  int64_t j = columns.from;
  for (; j + kStep <= columns.to; j += kStep) add(DF(), j);
  for (; j < columns.to; ++j) add(hn::CappedTag<float, 1>(), j);
}

// Panels of a plain type.
template <class Line>
struct PlainPanels {
  static constexpr int kNumbers = Line::kNumbers;
  static constexpr int64_t kFetch = kPlainLineBytes * kFetchEvery / kNumbers;
  static constexpr int64_t kGroupBytes = 32 / kNumbers * kPlainLineBytes;
  struct Panel {
    const uint8_t* lines;
  };

  explicit PlainPanels(const LinearArgs& a)
      : w(reinterpret_cast<const uint8_t*>(a.w)), panel_bytes(plain_panel_bytes(a.dtype, a.cols)) {}
  Panel panel(int64_t n) const { return {w + n * panel_bytes}; }
  static const uint8_t* chunk(const Panel& panel, int64_t k) {
    return panel.lines + k / kNumbers * kPlainLineBytes;
  }
  static void times(const Panel& panel, int64_t k, int64_t n, const float* x, int64_t x_stride, int64_t rows,
                    float (*sums)[kPanelOuts]) {
    times(chunk(panel, k), n, x, x_stride, rows, k == 0, sums);
  }
  // `lines` are those of a chunk of n numbers, which is a panel's first one or not.
  static void times(const uint8_t* lines, int64_t n, const float* x, int64_t x_stride, int64_t rows,
                    bool first, float (*sums)[kPanelOuts]) {
    static constexpr auto kChunks = chunk_functions<Line>(std::make_integer_sequence<int, kRowsTogether>());
    kChunks[static_cast<size_t>(rows - 1)](lines, n, x, x_stride, first, sums);
  }
  static void widen(const Panel& panel, int64_t k, int64_t lines, float* to) {
    Widen<Line>(chunk(panel, k), lines, to);
  }
  // For tiles: lines of n numbers in place or at `buffer`, and the parts of bf16 that a weight has.
  static constexpr bool kInPlace = true;
  static constexpr int kParts = std::is_same_v<Line, LineF16> ? 2 : 1;
  static const uint8_t* lines(const Panel& panel, int64_t k, int64_t /*n*/, uint8_t* /*buffer*/) {
    return chunk(panel, k);
  }

  const uint8_t* w;
  int64_t panel_bytes;
};

// Rows as in a file: the lines of a chunk are gathered where they are used.
template <class Line>
struct PlainRows {
  static constexpr int kNumbers = Line::kNumbers;
  static constexpr int64_t kFetch = 0;  // gathering fetches the next panel
  static constexpr int64_t kGroupBytes = 0;
  struct Panel {
    const PlainMatrix& matrix;
    int64_t row;
  };

  explicit PlainRows(const LinearArgs& a)
      : matrix{reinterpret_cast<const uint8_t*>(a.w), a.outs,
               static_cast<int64_t>(bytes_of(a.dtype, static_cast<uint64_t>(a.cols))),
               a.dtype == DType::f16} {}
  Panel panel(int64_t n) const { return {matrix, n * kPanelOuts}; }
  static const uint8_t* chunk(const Panel& panel, int64_t k) {
    return panel.matrix.bytes + panel.row * panel.matrix.row_bytes + k / kNumbers * 4;
  }
  // A panel's lines [first, first + count) at `lines`.
  static void gather(const Panel& panel, int64_t first, int64_t count, uint32_t* lines) {
    for (int64_t i = 0; i < count; i += kGatheredLines)
      GatherLines(panel.matrix, panel.row, first + i, lines + i * kPanelOuts);
  }
  static void times(const Panel& panel, int64_t k, int64_t n, const float* x, int64_t x_stride, int64_t rows,
                    float (*sums)[kPanelOuts]) {
    HWY_ALIGN uint32_t lines[kLinearChunk / kNumbers * kPanelOuts];
    gather(panel, k / kNumbers, (n + kNumbers - 1) / kNumbers, lines);
    PlainPanels<Line>::times(reinterpret_cast<const uint8_t*>(lines), n, x, x_stride, rows, k == 0, sums);
  }
  static void widen(const Panel& panel, int64_t k, int64_t lines, float* to) {
    HWY_ALIGN uint32_t gathered[kLinearChunk / kNumbers * kPanelOuts];
    gather(panel, k / kNumbers, lines, gathered);
    Widen<Line>(reinterpret_cast<const uint8_t*>(gathered), lines, to);
  }
  static constexpr bool kInPlace = false;
  static constexpr int kParts = PlainPanels<Line>::kParts;
  static const uint8_t* lines(const Panel& panel, int64_t k, int64_t n, uint8_t* buffer) {
    gather(panel, k / kNumbers, (n + kNumbers - 1) / kNumbers, reinterpret_cast<uint32_t*>(buffer));
    return buffer;
  }

  PlainMatrix matrix;
};

// Panels of packed bf16.
struct PackedPanels {
  static constexpr int kNumbers = kPackedLineNumbers;
  static constexpr int64_t kFetch = kPackedLineBytes * kFetchEvery / kNumbers;
  static constexpr int64_t kGroupBytes = 32 / kNumbers * kPackedLineBytes;
  using Panel = PackedPanel;

  explicit PackedPanels(const LinearArgs& a) : w(a.w), outliers(a.outliers), cols(a.cols) {}
  Panel panel(int64_t n) const { return packed_panel(w, outliers, cols, n); }
  static const uint8_t* chunk(const Panel& panel, int64_t k) {
    return panel.lines + k / kNumbers * kPackedLineBytes;
  }
  static void times(const Panel& panel, int64_t k, int64_t n, const float* x, int64_t x_stride, int64_t rows,
                    float (*sums)[kPanelOuts]) {
    static constexpr auto kChunks = packed_chunks(std::make_integer_sequence<int, kRowsTogether>());
    kChunks[static_cast<size_t>(rows - 1)](panel, k / kNumbers, (k + n) / kNumbers, x, x_stride, k == 0,
                                           sums);
  }
  static void widen(const Panel& panel, int64_t k, int64_t lines, float* to) {
    WidenPacked(panel, k / kNumbers, k / kNumbers + lines, to);
  }
  static constexpr bool kInPlace = false;
  static constexpr int kParts = 1;
  static const uint8_t* lines(const Panel& panel, int64_t k, int64_t n, uint8_t* buffer) {
    UnpackLines(panel, k / kNumbers, (k + n) / kNumbers, buffer);
    return buffer;
  }

  const std::byte* w;
  const PackedOutlier* outliers;
  int64_t cols;
};

// A few rows of x: weights are widened in registers, and each panel is read once, from the first byte to the
// last.
template <class Panels>
void Fused(const LinearArgs& a, int64_t begin, int64_t end) {
  const Panels panels(a);
  const int64_t groups = (a.rows + kRowsTogether - 1) / kRowsTogether;
  HWY_ALIGN float sums[kFusedRows][kPanelOuts];
  for (int64_t n = begin / kPanelOuts * kPanelOuts; n < end; n += kPanelOuts) {
    const typename Panels::Panel panel = panels.panel(n / kPanelOuts);
    for (int64_t k = 0; k < a.cols; k += kLinearChunk) {
      const int64_t count = std::min(kLinearChunk, a.cols - k);
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t m = a.rows * g / groups;
        Panels::times(panel, k, count, a.x + m * a.x_stride + k, a.x_stride, a.rows * (g + 1) / groups - m,
                      sums + m);
      }
    }
    const Columns columns = columns_of(n, kPanelOuts, begin, end);
    for (int64_t r = 0; r < a.rows; ++r) {
      float* y = a.y + r * a.y_stride;
      for (int64_t j = columns.from; j < columns.to; ++j) {
        const float sum = sums[r][j - n];
        y[j] = a.bias == nullptr ? sum : sum + a.bias[j];
      }
    }
  }
}

// Many rows of x: a chunk of a panel is widened into scratch memory, then used by all rows of a block.
template <class Panels>
void Widened(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  static constexpr auto kTiles = widened_tiles(std::make_integer_sequence<int, kTileRows>());
  const Panels panels(a);
  const int64_t last_panel = (end - 1) / kPanelOuts;
  const auto panel_at = [&](int64_t panel) { return panels.panel(std::min(panel, last_panel)); };
  float* const wide = scratch;
  float* const block = scratch + kLinearChunk * kTileOuts;
  HWY_ALIGN float sums[kTileRows][kTileOuts];
  // Blocks and tiles of about as many rows each: a narrow last one would cost as much as a wide one.
  const int64_t blocks = (a.rows + kRowBlock - 1) / kRowBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first_row = a.rows * b / blocks;
    const int64_t rows = a.rows * (b + 1) / blocks - first_row;
    const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
    for (int64_t k = 0; k < a.cols; k += kLinearChunk) {
      const int64_t lines = (std::min(kLinearChunk, a.cols - k) + Panels::kNumbers - 1) / Panels::kNumbers;
      const int64_t numbers = lines * Panels::kNumbers;
      // The rows' chunks side by side: apart by a power of two they would share a few sets of the L1 cache.
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(a.x + (first_row + r) * a.x_stride + k, numbers, block + r * kLinearChunk);
      for (int64_t n = begin / kPanelOuts * kPanelOuts; n < end; n += kTileOuts) {
        Ahead next;
        next.step = Panels::kFetch;
        for (int p = 0; p < kTilePanels; ++p) {
          const int64_t panel = n / kPanelOuts + p;
          Panels::widen(panel_at(panel), k, lines, wide + p * kPanelOuts);
          next.panels[p] = Panels::chunk(panel_at(panel + kTilePanels), k);
        }
        const Columns columns = columns_of(n, kTileOuts, begin, end);
        for (int64_t tile = 0; tile < tiles; ++tile) {
          const int64_t m = rows * tile / tiles;
          const int64_t mr = rows * (tile + 1) / tiles - m;
          if (k > 0) fetch_sums(a.y + (first_row + m) * a.y_stride + n, mr, a.y_stride, kTileOuts);
          kTiles[static_cast<size_t>(mr - 1)](block + m * kLinearChunk, wide, numbers, next, sums);
          for (int64_t r = 0; r < mr; ++r) Accumulate(a, first_row + m + r, n, columns, k, sums[r]);
        }
      }
    }
  }
}

template <class Panels>
void Range(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.rows <= kFusedRows) {
    Fused<Panels>(a, begin, end);
  } else {
    Widened<Panels>(a, begin, end, scratch);
  }
}

template <class Line>
void PlainRange(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.in_rows) {
    Range<PlainRows<Line>>(a, begin, end, scratch);
  } else {
    Range<PlainPanels<Line>>(a, begin, end, scratch);
  }
}

#if HWY_TARGET == HWY_AVX3_DL
template <class Line>
void PlainByTiles(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.in_rows) {
    RangeByTiles<PlainRows<Line>>(a, begin, end, scratch);
  } else {
    RangeByTiles<PlainPanels<Line>>(a, begin, end, scratch);
  }
}
#endif

void LinearRange(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.rows < 1 || begin >= end) return;
#if HWY_TARGET == HWY_AVX3_DL
  if (amx_in_use() && a.packed) return RangeByTiles<PackedPanels>(a, begin, end, scratch);
  if (amx_in_use() && a.dtype == DType::bf16) return PlainByTiles<LineBf16>(a, begin, end, scratch);
  if (amx_in_use() && a.dtype == DType::f16) return PlainByTiles<LineF16>(a, begin, end, scratch);
#endif
  if (a.packed) {
    Range<PackedPanels>(a, begin, end, scratch);
  } else if (a.dtype == DType::f32) {
    PlainRange<LineF32>(a, begin, end, scratch);
  } else if (a.dtype == DType::f16) {
    PlainRange<LineF16>(a, begin, end, scratch);
  } else {
    PlainRange<LineBf16>(a, begin, end, scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(LinearRange);

void linear(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  if (is_quantized(args.dtype)) {
    linear_quantized(args, begin, end, scratch);
  } else {
    HWY_DYNAMIC_DISPATCH(LinearRange)(args, begin, end, scratch);
  }
}

}  // namespace qwench
#endif
