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
#include "kernels/plain_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// To memory past the caches: what is packed is larger than they are, and read much later.
HWY_INLINE void StoreLines(const uint32_t* lines, int64_t count, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(to, lines, static_cast<size_t>(count * kPlainLineBytes));
#else
  const hn::FixedTag<uint32_t, 4> d32;
  auto* words = reinterpret_cast<uint32_t*>(to);
  for (int64_t i = 0; i < count * kPlainPanelRows; i += 4)
    hn::Stream(hn::Load(d32, lines + i), d32, words + i);
#endif
}

void PackPlain(DType dtype, const uint8_t* matrix, int64_t rows, int64_t cols, int64_t begin, int64_t end,
               std::byte* panels) {
  const PlainMatrix of{matrix, rows, static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols))),
                       dtype == DType::f16};
  const int64_t panel_bytes = plain_panel_bytes(dtype, cols);
  const int64_t count = panel_bytes / kPlainLineBytes;
  HWY_ALIGN uint32_t lines[kGatheredLines * kPlainPanelRows];
  for (int64_t n = begin; n < end; n += kPlainPanelRows) {
    std::byte* panel = panels + n / kPlainPanelRows * panel_bytes;
    for (int64_t line = 0; line < count; line += kGatheredLines) {
      GatherLines(of, n, line, lines);
      StoreLines(lines, std::min(kGatheredLines, count - line), panel + line * kPlainLineBytes);
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
