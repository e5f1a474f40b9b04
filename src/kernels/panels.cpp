#include "kernels/panels.h"

#include <algorithm>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/quantized_panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// One part of 8 rows as 16 vectors of pairs: pairs[(p * 8 + row) * 2 + i] is number 2 p + i.
template <class P>
HWY_INLINE void Interleave(const uint8_t* const* blocks, int part, uint16_t* pairs) {
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < kPanelRows; ++j) {
    const auto q = P::Rows::Part(blocks[j], part);
    for (int i = 0; i < 16; ++i) {
      uint16_t* to = pairs + (i / 2 * kPanelRows + j) * 2 + i % 2;
      to[0] = q.low.v[i];
      to[16 * kPanelRows] = q.high.v[i];
    }
  }
#else
  // Four rows at a time: a pair is a 32-bit lane, and four by four of them are transposed.
  const hn::FixedTag<uint8_t, 16> d8;
  const hn::FixedTag<uint16_t, 8> d16;
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<uint64_t, 2> d64;
  const hn::Half<decltype(d8)> half;
  for (int j = 0; j < kPanelRows; j += 4) {
    hn::Vec<decltype(d32)> of_row[4][4];  // [row][4 pairs]
    for (int r = 0; r < 4; ++r) {
      const auto q = P::Rows::Part(blocks[j + r], part);
      of_row[r][0] = hn::BitCast(d32, hn::PromoteTo(d16, hn::LowerHalf(half, q.low)));
      of_row[r][1] = hn::BitCast(d32, hn::PromoteTo(d16, hn::UpperHalf(half, q.low)));
      of_row[r][2] = hn::BitCast(d32, hn::PromoteTo(d16, hn::LowerHalf(half, q.high)));
      of_row[r][3] = hn::BitCast(d32, hn::PromoteTo(d16, hn::UpperHalf(half, q.high)));
    }
    auto* to = reinterpret_cast<uint32_t*>(pairs) + j;
    for (int g = 0; g < 4; ++g, to += 4 * kPanelRows) {
      const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, of_row[0][g], of_row[1][g]));
      const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d32, of_row[0][g], of_row[1][g]));
      const auto cd0 = hn::BitCast(d64, hn::InterleaveLower(d32, of_row[2][g], of_row[3][g]));
      const auto cd1 = hn::BitCast(d64, hn::InterleaveUpper(d32, of_row[2][g], of_row[3][g]));
      hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d64, ab0, cd0)), d32, to);
      hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d64, ab0, cd0)), d32, to + kPanelRows);
      hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d64, ab1, cd1)), d32, to + 2 * kPanelRows);
      hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d64, ab1, cd1)), d32, to + 3 * kPanelRows);
    }
  }
#endif
}

template <class P>
HWY_NOINLINE void PackPanel(const uint8_t* const* rows, int64_t cols, uint8_t* panel) {
  const uint8_t* blocks[kPanelRows];
  std::copy_n(rows, kPanelRows, blocks);
  uint8_t* quants = panel;
  uint8_t* scales = panel + PanelGeometry<P>(cols).quants;
  HWY_ALIGN uint16_t pairs[16 * kPanelRows * 2];
  for (int64_t k = 0; k < cols; k += P::Rows::kSize) {
    for (int part = 0; part < P::kParts; ++part, quants += P::kPartBytes) {
      Interleave<P>(blocks, part, pairs);
      ForPieces([&](int row) HWY_ATTR {
        Pairs from[16];
        for (int p = 0; p < 16; ++p) from[p] = LoadPairs(pairs + (p * kPanelRows + row) * 2);
        Pairs packed[P::kBits];
        Fields<P::kBits>::Put(from, packed);
        for (int v = 0; v < P::kBits; ++v) StorePairs(packed[v], quants + v * kVectorBytes + row * 4);
      });
    }
    P::Scales::Put(blocks, scales);
    scales += P::kScaleBytes;
    for (const uint8_t*& block : blocks) block += P::Rows::kBytes;
  }
}

void PackPanels(DType dtype, const uint8_t* matrix, int64_t rows, int64_t cols, int64_t begin, int64_t end,
                uint8_t* panels) {
  WithPanelType(dtype, [&](auto type) HWY_ATTR {
    using P = decltype(type);
    const int64_t row_bytes = cols / P::Rows::kSize * P::Rows::kBytes;
    const int64_t panel = PanelGeometry<P>(cols).bytes;
    for (int64_t n = begin; n < end; n += kPanelRows) {
      const uint8_t* of_panel[kPanelRows];
      for (int j = 0; j < kPanelRows; ++j) of_panel[j] = matrix + std::min(n + j, rows - 1) * row_bytes;
      PackPanel<P>(of_panel, cols, panels + n / kPanelRows * panel);
    }
  });
}

template <class P>
HWY_NOINLINE void UnpackRow(const uint8_t* panels, int64_t cols, int64_t row, float* out) {
  const PanelGeometry<P> g(cols);
  const uint8_t* quants = panels + row / kPanelRows * g.bytes;
  const uint8_t* from = quants + g.quants;
  const auto j = static_cast<int>(row % kPanelRows);
  const int piece = j / kPieceRows * kPieceRows;
  HWY_ALIGN float scales[P::kParts * P::kScales * kPanelRows];
  HWY_ALIGN float mins[P::kMins ? P::kParts * P::kScales * kPanelRows : 1];
  for (int64_t k = 0; k < cols; k += P::Rows::kSize, from += P::kScaleBytes) {
    P::Scales::Get(from, scales, mins, kPanelRows);
    for (int part = 0; part < P::kParts; ++part, quants += P::kPartBytes, out += 32) {
      Pairs vectors[P::kBits];
      for (int v = 0; v < P::kBits; ++v) vectors[v] = LoadPairs(quants + v * kVectorBytes + piece * 4);
      HWY_ALIGN int16_t pairs[16 * kPieceRows * 2];
      Unroll<16>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
        StorePairs(Moved(P::template Get<p>(vectors), P::kMove), pairs + p * kPieceRows * 2);
      });
      for (int i = 0; i < 32; ++i) {
        const int s = (part * P::kScales + i * P::kScales / 32) * static_cast<int>(kPanelRows) + j;
        const auto at = (i / 2 * kPieceRows + j - piece) * 2 + i % 2;
        out[i] = static_cast<float>(pairs[at]) * scales[s];
        if constexpr (P::kMins) out[i] += mins[s];
      }
    }
  }
}

void UnpackPanelRow(DType dtype, const uint8_t* panels, int64_t cols, int64_t row, float* out) {
  WithPanelType(dtype, [&](auto type) HWY_ATTR { UnpackRow<decltype(type)>(panels, cols, row, out); });
}

uint64_t PanelBytes(DType dtype, int64_t cols) {
  int64_t bytes = 0;
  WithPanelType(dtype, [&](auto type) { bytes = PanelGeometry<decltype(type)>(cols).bytes; });
  return static_cast<uint64_t>(bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(PackPanels);
HWY_EXPORT(UnpackPanelRow);
HWY_EXPORT(PanelBytes);

uint64_t panel_bytes(DType quantized, uint64_t rows, uint64_t cols) {
  const uint64_t panels = (rows + kPanelRows - 1) / kPanelRows;
  return panels * HWY_DYNAMIC_DISPATCH(PanelBytes)(quantized, static_cast<int64_t>(cols));
}

void pack_panels(DType quantized, const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin,
                 int64_t end, std::byte* panels) {
  HWY_DYNAMIC_DISPATCH(PackPanels)
  (quantized, reinterpret_cast<const uint8_t*>(matrix), rows, cols, begin, end,
   reinterpret_cast<uint8_t*>(panels));
}

void unpack_panel_row(DType quantized, const std::byte* panels, int64_t cols, int64_t row, float* out) {
  HWY_DYNAMIC_DISPATCH(UnpackPanelRow)
  (quantized, reinterpret_cast<const uint8_t*>(panels), cols, row, out);
}

}  // namespace qwench
#endif
