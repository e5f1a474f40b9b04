// Lines of panels (plain_panels.h) made from rows as they lie in a file, once per instruction set.

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/plain_panels.h"
#include "kernels/simd-inl.h"

#if defined(QWENCH_KERNELS_PLAIN_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_PLAIN_ROWS_INL_H_
#undef QWENCH_KERNELS_PLAIN_ROWS_INL_H_
#else
#define QWENCH_KERNELS_PLAIN_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// A matrix of a plain type, row after row; unaligned.
struct PlainMatrix {
  const uint8_t* bytes;
  int64_t rows;
  int64_t row_bytes;
  bool split;  // its lines hold the first numbers of all pairs before the second ones: f16
};

// Lines that are gathered at a time: a cache line of each row.
constexpr int64_t kGatheredLines = 16;

// lines[i, row] = word i of each row; rows are unaligned.
HWY_INLINE void Transpose(const uint8_t* const* rows, uint32_t* lines) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < kGatheredLines; ++i) {
    for (int64_t r = 0; r < kPlainPanelRows; ++r)
      lines[i * kPlainPanelRows + r] = load_unaligned<uint32_t>(rows[r] + i * 4);
  }
#else
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<uint64_t, 2> d64;
  for (int64_t r = 0; r < kPlainPanelRows; r += 4) {
    for (int64_t i = 0; i < kGatheredLines; i += 4) {
      const auto a = LoadAnywhere(d32, rows[r] + i * 4);
      const auto b = LoadAnywhere(d32, rows[r + 1] + i * 4);
      const auto c = LoadAnywhere(d32, rows[r + 2] + i * 4);
      const auto d = LoadAnywhere(d32, rows[r + 3] + i * 4);
      const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
      const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
      const auto cd0 = hn::BitCast(d64, hn::InterleaveLower(d32, c, d));
      const auto cd1 = hn::BitCast(d64, hn::InterleaveUpper(d32, c, d));
      uint32_t* to = lines + i * kPlainPanelRows + r;
      hn::Store(hn::BitCast(d32, hn::InterleaveLower(d64, ab0, cd0)), d32, to);
      hn::Store(hn::BitCast(d32, hn::InterleaveUpper(d64, ab0, cd0)), d32, to + kPlainPanelRows);
      hn::Store(hn::BitCast(d32, hn::InterleaveLower(d64, ab1, cd1)), d32, to + 2 * kPlainPanelRows);
      hn::Store(hn::BitCast(d32, hn::InterleaveUpper(d64, ab1, cd1)), d32, to + 3 * kPlainPanelRows);
    }
  }
#endif
}

// Pairs of 16 bits, the first of all rows before the second of all.
HWY_INLINE void SplitPairs(uint32_t* line) {
#if HWY_TARGET == HWY_SCALAR
  uint16_t halves[2 * kPlainPanelRows];
  for (int64_t r = 0; r < kPlainPanelRows; ++r) {
    halves[r] = static_cast<uint16_t>(line[r]);
    halves[kPlainPanelRows + r] = static_cast<uint16_t>(line[r] >> 16);
  }
  std::memcpy(line, halves, sizeof(halves));
#else
  const hn::FixedTag<uint16_t, 8> d16;
  auto* halves = reinterpret_cast<uint16_t*>(line);
  const auto a = hn::Load(d16, halves);
  const auto b = hn::Load(d16, halves + 8);
  const auto c = hn::Load(d16, halves + 16);
  const auto d = hn::Load(d16, halves + 24);
  hn::Store(hn::ConcatEven(d16, b, a), d16, halves);
  hn::Store(hn::ConcatEven(d16, d, c), d16, halves + 8);
  hn::Store(hn::ConcatOdd(d16, b, a), d16, halves + 16);
  hn::Store(hn::ConcatOdd(d16, d, c), d16, halves + 24);
#endif
}

// Lines [line, line + kGatheredLines) of the panel of the rows from n on; zeros where the matrix ends.
HWY_INLINE void GatherLines(const PlainMatrix& matrix, int64_t n, int64_t line, uint32_t* lines) {
  HWY_ALIGN uint8_t padded[kPlainPanelRows][kGatheredLines * 4];
  const int64_t rows = std::min(kPlainPanelRows, matrix.rows - n);
  const auto bytes = static_cast<size_t>(std::min(kGatheredLines * 4, matrix.row_bytes - line * 4));
  const uint8_t* of_rows[kPlainPanelRows];
  for (int64_t r = 0; r < kPlainPanelRows; ++r) {
    const uint8_t* from = matrix.bytes + (n + r) * matrix.row_bytes + line * 4;
    // What is read in the next panel: its rows are apart, too short for the processor to foresee them.
    hwy::Prefetch(from + kPlainPanelRows * matrix.row_bytes);
    of_rows[r] = from;
    if (r < rows && bytes == kGatheredLines * 4) continue;
    std::memset(padded[r], 0, sizeof(padded[r]));
    if (r < rows) std::memcpy(padded[r], from, bytes);
    of_rows[r] = padded[r];
  }
  Transpose(of_rows, lines);
  if (!matrix.split) return;
  for (int64_t i = 0; i < kGatheredLines; ++i) SplitPairs(lines + i * kPlainPanelRows);
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
