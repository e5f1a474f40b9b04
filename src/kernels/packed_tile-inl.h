// Products of rows of x with panels of packed bf16 (packed_bf16.h), once per instruction set: the chains of
// plain_tile-inl.h over the same numbers.

#include "kernels/packed_bf16.h"
#include "kernels/plain_tile-inl.h"

#if defined(QWENCH_KERNELS_PACKED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_PACKED_TILE_INL_H_
#undef QWENCH_KERNELS_PACKED_TILE_INL_H_
#else
#define QWENCH_KERNELS_PACKED_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// A vector has 4 or 8 rows, so that 32 bytes of indices are two halves of whole vectors.
using DL = hn::CappedTag<float, 8>;
using VL = hn::Vec<DL>;
constexpr int64_t kPackedLanes = static_cast<int64_t>(hn::MaxLanes(DL()));
constexpr int kPackedVectors = kPanelOuts / static_cast<int>(kPackedLanes);

// w[v][k] = number k < 4 of rows [v * kPackedLanes, (v + 1) * kPackedLanes) of a line, without its outliers.
struct PackedLine {
  // Written out: a constructor that the compiler makes is not compiled for the instruction set.
  HWY_INLINE PackedLine() {}
  VL w[kPackedVectors][kPackedLineNumbers];
};

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void LoadPacked(const uint8_t* table, const uint8_t* line, PackedLine& out) {
  for (int r = 0; r < kPanelOuts; ++r) {
    for (int k = 0; k < kPackedLineNumbers; ++k) {
      const int slot = r / 4 * 16 + k / 2 * 8 + r % 4 * 2 + k % 2;
      const uint32_t high = table[line[64 + slot % 32] >> (slot / 32 * 4) & 15];
      const uint32_t bits = high << 24 | static_cast<uint32_t>(line[slot]) << 16;
      out.w[r][k] = hn::BitCast(DL(), hn::Set(hn::Rebind<uint32_t, DL>(), bits));
    }
  }
}
#else
HWY_INLINE void LoadPacked(const uint8_t* table, const uint8_t* line, PackedLine& out) {
  const hn::Repartition<uint8_t, DL> d8;
  const hn::Repartition<uint16_t, DL> d16;
  const hn::Rebind<uint32_t, DL> d32;
  constexpr int64_t kBytes = kPackedLanes * 4;
  constexpr int kHalf = kPackedVectors / 2;
  const auto of_table = hn::LoadDup128(d8, table);
  const auto low4 = hn::Set(d8, 15);
  const auto odd = hn::Set(d32, 0xFFFF0000U);
  Unroll<kHalf>([&](auto h) HWY_ATTR __attribute__((always_inline)) {
    const auto both = LoadAnywhere(d8, line + 64 + h * kBytes);
    const auto above = hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, both)));
    Unroll<2>([&](auto half) HWY_ATTR __attribute__((always_inline)) {
      constexpr int kVector = half * kHalf + h;
      const auto high = hn::TableLookupBytes(of_table, hn::And(half == 0 ? both : above, low4));
      const auto low = LoadAnywhere(d8, line + kVector * kBytes);
      const auto first = hn::BitCast(d32, hn::InterleaveLower(d8, low, high));
      const auto second = hn::BitCast(d32, hn::InterleaveUpper(d8, low, high));
      VL* w = out.w[kVector];
      w[0] = hn::BitCast(DL(), hn::ShiftLeft<16>(first));
      w[1] = hn::BitCast(DL(), hn::And(first, odd));
      w[2] = hn::BitCast(DL(), hn::ShiftLeft<16>(second));
      w[3] = hn::BitCast(DL(), hn::And(second, odd));
    });
  });
}
#endif

// The place of an outlier's number in its line, [k][row].
HWY_INLINE int64_t PlaceOf(uint32_t slot) {
  const int64_t row = slot / 16 * 4 + slot % 8 / 2;
  const int64_t k = slot % 16 / 8 * 2 + slot % 2;
  return k * kPanelOuts + row;
}

// Of a number with this low byte.
HWY_INLINE float OutlierAt(const PackedOutlier& outlier, const uint8_t* line) {
  const uint32_t bits = outlier.high << 24 | static_cast<uint32_t>(line[outlier.at % 64]) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

HWY_INLINE void FetchBehindLine(const uint8_t* line) {
  fetch_ahead(line + kAheadOfReads);
  fetch_ahead(line + kAheadOfReads + 64);
}

// The line with its outliers, of which `next` is the first; returns the first behind them.
HWY_NOINLINE const PackedOutlier* LoadWithOutliers(const PackedPanel& panel, int64_t line,
                                                   const PackedOutlier* next, PackedLine& out) {
  HWY_ALIGN float values[kPackedLineNumbers * kPanelOuts];
  const uint8_t* at = panel.lines + line * kPackedLineBytes;
  LoadPacked(panel.table, at, out);
  for (int v = 0; v < kPackedVectors; ++v) {
    for (int k = 0; k < kPackedLineNumbers; ++k)
      hn::StoreU(out.w[v][k], DL(), values + k * kPanelOuts + v * kPackedLanes);
  }
  for (; next != panel.outliers_end && next->at / 64 == line; ++next)
    values[PlaceOf(next->at % 64)] = OutlierAt(*next, at);
  for (int v = 0; v < kPackedVectors; ++v) {
    for (int k = 0; k < kPackedLineNumbers; ++k)
      out.w[v][k] = hn::LoadU(DL(), values + k * kPanelOuts + v * kPackedLanes);
  }
  return next;
}

HWY_INLINE const PackedOutlier* OutliersFrom(const PackedPanel& panel, int64_t line) {
  return std::lower_bound(
      panel.outliers, panel.outliers_end, line * 64,
      [](const PackedOutlier& outlier, int64_t at_least) { return int64_t{outlier.at} < at_least; });
}

// As ChunkTimesRows, of lines [first_line, last_line) of a panel.
template <int MR>
HWY_NOINLINE void PackedChunkTimesRows(const PackedPanel& panel, int64_t first_line, int64_t last_line,
                                       const float* x, int64_t x_stride, bool first,
                                       float (*sums)[kPanelOuts]) {
  const float* rows[MR];
  for (int r = 0; r < MR; ++r) rows[r] = x + r * x_stride;
  VL acc[MR * kPackedVectors];
  Unroll<MR * kPackedVectors>([&](auto i) HWY_ATTR
                              __attribute__((always_inline)) { acc[i] = hn::Zero(DL()); });
  const auto add = [&](const PackedLine& line, int64_t k) HWY_ATTR __attribute__((always_inline)) {
    Unroll<static_cast<int>(kPackedLineNumbers)>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
        const VL of_x = hn::Set(DL(), rows[r][k + i]);
        Unroll<kPackedVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
          acc[r * kPackedVectors + v] = hn::MulAdd(of_x, line.w[v][i], acc[r * kPackedVectors + v]);
        });
      });
    });
  };
  const PackedOutlier* next = OutliersFrom(panel, first_line);
  int64_t k = 0;
  for (int64_t line = first_line; line < last_line;) {
    const int64_t with = next == panel.outliers_end ? last_line : int64_t{next->at / 64};
    for (const int64_t until = std::min(with, last_line); line < until; ++line, k += kPackedLineNumbers) {
      const uint8_t* at = panel.lines + line * kPackedLineBytes;
      FetchBehindLine(at);
      PackedLine w;
      LoadPacked(panel.table, at, w);
      add(w, k);
    }
    if (line == last_line) break;
    PackedLine w;
    next = LoadWithOutliers(panel, line, next, w);
    add(w, k);
    ++line;
    k += kPackedLineNumbers;
  }
  Unroll<MR>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    Unroll<kPackedVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      float* to = sums[r] + v * kPackedLanes;
      const VL sum = acc[r * kPackedVectors + v];
      hn::StoreU(first ? sum : hn::Add(hn::LoadU(DL(), to), sum), DL(), to);
    });
  });
}

using PackedChunkFunction = void (*)(const PackedPanel&, int64_t, int64_t, const float*, int64_t, bool,
                                     float (*)[kPanelOuts]);

template <int... I>
constexpr std::array<PackedChunkFunction, sizeof...(I)> packed_chunks(std::integer_sequence<int, I...>) {
  return {&PackedChunkTimesRows<I + 1>...};
}

// As Widen, of lines [first_line, last_line) of a panel.
HWY_NOINLINE void WidenPacked(const PackedPanel& panel, int64_t first_line, int64_t last_line, float* to) {
  const uint8_t* at = panel.lines + first_line * kPackedLineBytes;
  float* of_line = to;
  for (int64_t line = first_line; line < last_line; ++line, at += kPackedLineBytes) {
    PackedLine w;
    LoadPacked(panel.table, at, w);
    Unroll<static_cast<int>(kPackedLineNumbers)>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
      Unroll<kPackedVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        hn::StoreU(w.w[v][k], DL(), of_line + k * kTileOuts + v * kPackedLanes);
      });
    });
    of_line += kPackedLineNumbers * kTileOuts;
  }
  const PackedOutlier* next = OutliersFrom(panel, first_line);
  for (; next != panel.outliers_end && int64_t{next->at} < last_line * 64; ++next) {
    const int64_t line = next->at / 64;
    const int64_t place = PlaceOf(next->at % 64);
    to[((line - first_line) * kPackedLineNumbers + place / kPanelOuts) * kTileOuts + place % kPanelOuts] =
        OutlierAt(*next, panel.lines + line * kPackedLineBytes);
  }
}

// Lines of plain panels of bf16 (plain_panels.h) at `to`, from lines [first_line, last_line) of a panel.
HWY_NOINLINE void UnpackLines(const PackedPanel& panel, int64_t first_line, int64_t last_line, uint8_t* to) {
  const uint8_t* at = panel.lines + first_line * kPackedLineBytes;
  uint8_t* of_line = to;
  for (int64_t line = first_line; line < last_line; ++line, at += kPackedLineBytes) {
    PackedLine w;
    LoadPacked(panel.table, at, w);
    const hn::Rebind<uint32_t, DL> d32;
    Unroll<kPackedVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      Unroll<2>([&](auto pair) HWY_ATTR __attribute__((always_inline)) {
        const auto first = hn::ShiftRight<16>(hn::BitCast(d32, w.w[v][pair * 2]));
        const auto second = hn::BitCast(d32, w.w[v][pair * 2 + 1]);
        hn::StoreU(hn::Or(first, second), d32,
                   reinterpret_cast<uint32_t*>(of_line + pair * kPlainLineBytes + v * kPackedLanes * 4));
      });
    });
    of_line += 2 * kPlainLineBytes;
  }
  const PackedOutlier* next = OutliersFrom(panel, first_line);
  for (; next != panel.outliers_end && int64_t{next->at} < last_line * 64; ++next) {
    const int64_t line = next->at / 64;
    const int64_t place = PlaceOf(next->at % 64);
    const int64_t k = (line - first_line) * kPackedLineNumbers + place / kPanelOuts;
    const int64_t row = place % kPanelOuts;
    to[k / 2 * kPlainLineBytes + row * 4 + k % 2 * 2 + 1] = static_cast<uint8_t>(next->high);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
