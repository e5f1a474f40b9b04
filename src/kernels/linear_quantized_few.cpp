#include <algorithm>
#include <numeric>

#include "kernels/linear_quantized.h"
#include "kernels/vnni_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear_quantized_few.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/byte_row-inl.h"
#include "kernels/quantized_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Rows of x that share what is unpacked; of types that are rarely met they share nothing, to save build time.
template <class P>
constexpr int kRowsTogether = P::kBits < 4 || P::kTable ? 1 : 4;

// Rows [m, m + MR) of y, or fewer where x ends, and the columns of one panel. of_panel(panel, sums) computes
// them.
template <class P, int MR, class F>
HWY_INLINE void OnePanel(const LinearArgs& a, const PanelGeometry<P>& g, int64_t m, int64_t n, int64_t begin,
                         int64_t end, F&& of_panel) {
  HWY_ALIGN float sums[MR][kPanelRows];
  of_panel(reinterpret_cast<const uint8_t*>(a.w) + n / kPanelRows * g.bytes, sums);
  for (int64_t r = m; r < std::min(m + MR, a.rows); ++r) {
    float* y = a.y + r * a.y_stride;
    for (int64_t j = std::max(n, begin); j < std::min(end, n + kPanelRows); ++j) {
      const float sum = sums[r - m][j - n];
      y[j] = a.bias == nullptr ? sum : sum + a.bias[j];
    }
  }
}

template <class P, int MR>
HWY_NOINLINE void PanelOfWords(const LinearArgs& a, const PanelGeometry<P>& g, const RowOfX* x, int64_t m,
                               int64_t n, int64_t begin, int64_t end) {
  RowOfX rows[MR];
  for (int r = 0; r < MR; ++r) rows[r] = x[std::min(m + r, a.rows - 1)];
  OnePanel<P, MR>(a, g, m, n, begin, end, [&](const uint8_t* panel, float(*sums)[kPanelRows]) HWY_ATTR {
    PanelTimesRows<P, MR>(panel, g, rows, a.cols, sums);
  });
}

template <class P, int MR>
HWY_NOINLINE void PanelOfBytes(const LinearArgs& a, const PanelGeometry<P>& g, int64_t m, int64_t n,
                               int64_t begin, int64_t end) {
  OnePanel<P, MR>(a, g, m, n, begin, end, [&](const uint8_t* panel, float(*sums)[kPanelRows]) HWY_ATTR {
    PanelTimesBytes<P, MR>(panel, g, *a.bytes, m, a.rows - 1, a.cols, sums);
  });
}

// of_panel(MR, m, n) for all panels and rows, MR of them at a time.
template <class P, class F>
HWY_INLINE void ForPanels(const LinearArgs& a, int64_t begin, int64_t end, F&& of_panel) {
  for (int64_t n = begin / kPanelRows * kPanelRows; n < end; n += kPanelRows) {
    for (int64_t m = 0; m < a.rows; m += kRowsTogether<P>) {
      if (m + 1 == a.rows) {
        of_panel(std::integral_constant<int, 1>(), m, n);
      } else {
        of_panel(std::integral_constant<int, kRowsTogether<P>>(), m, n);
      }
    }
  }
}

template <class P>
HWY_NOINLINE void FewRowsOfBytes(const LinearArgs& a, int64_t begin, int64_t end) {
  const PanelGeometry<P> g(a.cols);
  ForPanels<P>(a, begin, end,
               [&](auto mr, int64_t m, int64_t n) HWY_ATTR { PanelOfBytes<P, mr>(a, g, m, n, begin, end); });
}

template <class P>
HWY_NOINLINE void FewRowsOfWords(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  const PanelGeometry<P> g(a.cols);
  const QuantizedRows& q = *a.quantized;
  constexpr int64_t kShare = 32 / P::kScales;
  RowOfX x[kFewRows];
  auto* moves = reinterpret_cast<int32_t*>(scratch);
  for (int64_t r = 0; r < a.rows; ++r, moves += a.cols / kShare) {
    const int64_t at = r * q.stride;
    x[r] = {q.values + at, q.scales + at / 32, P::kScales == 1 ? q.sums + at / 32 : q.half_sums + at / 16,
            moves};
    if constexpr (P::kMove != 0) {
      for (int64_t i = 0; i < a.cols / kShare; ++i) {
        const int16_t* values = x[r].values + i * kShare;
        moves[i] = P::kMove * std::accumulate(values, values + kShare, 0);
      }
    }
  }
  ForPanels<P>(a, begin, end, [&](auto mr, int64_t m, int64_t n) HWY_ATTR {
    PanelOfWords<P, mr>(a, g, x, m, n, begin, end);
  });
}

void FewQuantizedRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  WithPanelType(a.dtype, [&](auto type) {
    using P = decltype(type);
    if constexpr (P::kBytes) {
      if (a.bytes != nullptr) return FewRowsOfBytes<P>(a, begin, end);
    }
    FewRowsOfWords<P>(a, begin, end, scratch);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(FewQuantizedRows);

void linear_quantized_few(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(FewQuantizedRows)(args, begin, end, scratch);
}

}  // namespace qwench
#endif
