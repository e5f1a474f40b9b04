#include "kernels/plain_panels.h"

#include <algorithm>
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/plain_panels.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "hwy/cache_control.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Lines that are packed at a time: a cache line of each row.
constexpr int64_t kLines = 16;
constexpr int64_t kRows = kPlainPanelRows;

// lines[i, row] = word i of each row; rows are unaligned.
HWY_INLINE void Transpose(const uint8_t* const* rows, uint32_t* lines) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < kLines; ++i) {
    for (int64_t r = 0; r < kRows; ++r) lines[i * kRows + r] = load_unaligned<uint32_t>(rows[r] + i * 4);
  }
#else
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<uint64_t, 2> d64;
  for (int64_t r = 0; r < kRows; r += 4) {
    for (int64_t i = 0; i < kLines; i += 4) {
      const auto a = LoadAnywhere(d32, rows[r] + i * 4);
      const auto b = LoadAnywhere(d32, rows[r + 1] + i * 4);
      const auto c = LoadAnywhere(d32, rows[r + 2] + i * 4);
      const auto d = LoadAnywhere(d32, rows[r + 3] + i * 4);
      const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
      const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
      const auto cd0 = hn::BitCast(d64, hn::InterleaveLower(d32, c, d));
      const auto cd1 = hn::BitCast(d64, hn::InterleaveUpper(d32, c, d));
      uint32_t* to = lines + i * kRows + r;
      hn::Store(hn::BitCast(d32, hn::InterleaveLower(d64, ab0, cd0)), d32, to);
      hn::Store(hn::BitCast(d32, hn::InterleaveUpper(d64, ab0, cd0)), d32, to + kRows);
      hn::Store(hn::BitCast(d32, hn::InterleaveLower(d64, ab1, cd1)), d32, to + 2 * kRows);
      hn::Store(hn::BitCast(d32, hn::InterleaveUpper(d64, ab1, cd1)), d32, to + 3 * kRows);
    }
  }
#endif
}

// Pairs of 16 bits, the first of all rows before the second of all.
HWY_INLINE void SplitPairs(uint32_t* line) {
#if HWY_TARGET == HWY_SCALAR
  uint16_t halves[2 * kRows];
  for (int64_t r = 0; r < kRows; ++r) {
    halves[r] = static_cast<uint16_t>(line[r]);
    halves[kRows + r] = static_cast<uint16_t>(line[r] >> 16);
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

// To memory past the caches: what is packed is larger than they are, and read much later.
HWY_INLINE void StoreLines(const uint32_t* lines, int64_t count, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(to, lines, static_cast<size_t>(count * kPlainLineBytes));
#else
  const hn::FixedTag<uint32_t, 4> d32;
  auto* words = reinterpret_cast<uint32_t*>(to);
  for (int64_t i = 0; i < count * kRows; i += 4) hn::Stream(hn::Load(d32, lines + i), d32, words + i);
#endif
}

void PackPlain(DType dtype, const uint8_t* matrix, int64_t rows, int64_t cols, int64_t begin, int64_t end,
               std::byte* panels) {
  const bool split = dtype == DType::f16;
  const auto row_bytes = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  const int64_t panel_bytes = plain_panel_bytes(dtype, cols);
  const int64_t count = panel_bytes / kPlainLineBytes;
  HWY_ALIGN uint32_t lines[kLines * kRows];
  HWY_ALIGN uint8_t padded[kRows][kLines * 4];
  for (int64_t n = begin; n < end; n += kRows) {
    std::byte* panel = panels + n / kRows * panel_bytes;
    const int64_t here = std::min(kRows, rows - n);
    for (int64_t line = 0; line < count; line += kLines) {
      const int64_t some = std::min(kLines, count - line);
      const auto bytes = static_cast<size_t>(std::min(kLines * 4, row_bytes - line * 4));
      const uint8_t* of_rows[kRows];
      for (int64_t r = 0; r < kRows; ++r) {
        const uint8_t* from = matrix + (n + r) * row_bytes + line * 4;
        // What is read in the next panel: its rows are apart, too short for the processor to foresee them.
        hwy::Prefetch(from + kRows * row_bytes);
        of_rows[r] = from;
        if (r < here && bytes == kLines * 4) continue;
        std::memset(padded[r], 0, sizeof(padded[r]));
        if (r < here) std::memcpy(padded[r], from, bytes);
        of_rows[r] = padded[r];
      }
      Transpose(of_rows, lines);
      if (split) {
        for (int64_t i = 0; i < some; ++i) SplitPairs(lines + i * kRows);
      }
      StoreLines(lines, some, panel + line * kPlainLineBytes);
    }
  }
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(PackPlain);

void pack_plain_panels(DType plain, const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin,
                       int64_t end, std::byte* panels) {
  HWY_DYNAMIC_DISPATCH(PackPlain)
  (plain, reinterpret_cast<const uint8_t*>(matrix), rows, cols, begin, end, panels);
}

void plain_panel_row(DType plain, const std::byte* panels, int64_t cols, int64_t row, int64_t begin,
                     int64_t n, std::byte* out) {
  const std::byte* panel = panels + row / kPlainPanelRows * plain_panel_bytes(plain, cols);
  const auto width = static_cast<size_t>(bytes_of(plain, 1));
  const int64_t r = row % kPlainPanelRows;
  for (int64_t k = begin; k < begin + n; ++k, out += width) {
    const int64_t number =
        plain == DType::bf16 ? (k / 2 * kPlainPanelRows + r) * 2 + k % 2 : k * kPlainPanelRows + r;
    std::memcpy(out, panel + number * static_cast<int64_t>(width), width);
  }
}

}  // namespace qwench
#endif
