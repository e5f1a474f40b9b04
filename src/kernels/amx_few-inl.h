// Products of one or two rows of x with weights of bf16 and f16, bit for bit as tiles compute them
// (amx_plain-inl.h), by fused multiply-adds: tiles would be nearly empty, and weights come from memory faster
// as one stream.

#include <xmmintrin.h>

#include "kernels/amx_plain-inl.h"
#include "kernels/byte_rows.h"

#if defined(QWENCH_KERNELS_AMX_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_AMX_FEW_INL_H_
#undef QWENCH_KERNELS_AMX_FEW_INL_H_
#else
#define QWENCH_KERNELS_AMX_FEW_INL_H_
#endif

#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

constexpr int kFewest = 1;

// Subnormal numbers count as 0, as for tiles, while it lives.
class WithoutSubnormals {
 public:
  WithoutSubnormals() : before_(_mm_getcsr()) {
    constexpr unsigned kFlushToZero = 0x8000;
    constexpr unsigned kDenormalsAreZero = 0x0040;
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~WithoutSubnormals() { _mm_setcsr(before_); }
  WithoutSubnormals(const WithoutSubnormals&) = delete;
  WithoutSubnormals& operator=(const WithoutSubnormals&) = delete;

 private:
  unsigned before_;
};

// The parts of a line's numbers: parts[i][v], of the first numbers of pairs (v = 0) and the second ones.
template <int kParts>
HWY_INLINE void LoadParts(const uint8_t* line, VF (*parts)[2]) {
  if constexpr (kParts == 1) {
    LineBf16::Load(line, 0, parts[0]);
  } else {
    VF w[2];
    LineF16::Load(line, 0, w);
    Unroll<2>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      const auto high = hn::And(hn::BitCast(DU(), w[v]), hn::Set(DU(), 0xFFFF0000U));
      parts[0][v] = hn::BitCast(DF(), high);
      parts[1][v] = hn::Sub(w[v], parts[0][v]);
    });
  }
}

// acc[row] += x[row] · the panel's 16 rows over one group. x is [MR][kPartsOfX][kGroup].
template <int MR, int kParts, int kPartsOfX>
HWY_INLINE void GroupTimesRows(const uint8_t* lines, const uint8_t* ahead, const float* x, VF* acc) {
  // Products of a part of the weights with a part of x: those with the first part, then those with the
  // second.
  constexpr int kSecond = kParts == 2 ? std::max(1, kPartsOfX - 1) : 0;
  constexpr int kProducts = kPartsOfX + kSecond;
  VF sums[MR * kProducts][2];
  Unroll<MR * kProducts>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    sums[i][0] = hn::Zero(DF());
    sums[i][1] = hn::Zero(DF());
  });
  for (int64_t i = 0; i < amx::kRows; ++i, lines += kPlainLineBytes, ahead += kPlainLineBytes) {
    fetch_ahead(ahead);
    VF w[kParts][2];
    LoadParts<kParts>(lines, w);
    Unroll<MR * kProducts>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
      constexpr int kRow = n / kProducts;
      constexpr int kOfW = n % kProducts < kPartsOfX ? 0 : 1;
      constexpr int kOfX = n % kProducts - kOfW * kPartsOfX;
      const float* at = x + (kRow * kPartsOfX + kOfX) * kGroup + 2 * i;
      Unroll<2>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        sums[n][v] = hn::MulAdd(hn::Set(DF(), at[v]), w[kOfW][v], sums[n][v]);
      });
    });
  }
  Unroll<MR * kProducts>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
    acc[n / kProducts] = hn::Add(acc[n / kProducts], hn::Add(sums[n][0], sums[n][1]));
  });
}

// The parts of rows of x as f32: [group][MR][kPartsOfX][kGroup].
template <int MR, int kPartsOfX>
HWY_INLINE void SplitFew(const LinearArgs& a, int64_t k, int64_t count, float* to) {
  HWY_ALIGN uint16_t parts[kPartsOfX][kGroup];
  for (int64_t from = 0; from < count; from += kGroup) {
    for (int r = 0; r < MR; ++r) {
      SplitGroup<kPartsOfX>(a.x + r * a.x_stride + k + from, count - from, reinterpret_cast<uint8_t*>(parts),
                            sizeof(parts[0]));
      for (int part = 0; part < kPartsOfX; ++part, to += kGroup) {
        for (int64_t i = 0; i < kGroup; i += kStep) {
          const auto halves = hn::LoadU(hn::Rebind<uint16_t, DF>(), parts[part] + i);
          const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(DU(), halves));
          hn::StoreU(hn::BitCast(DF(), bits), DF(), to + i);
        }
      }
    }
  }
}

template <class Panels, int kPartsOfX, int MR>
HWY_NOINLINE void FewestRows(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  const Panels panels(a);
  constexpr int64_t kOfGroup = int64_t{MR} * kPartsOfX * kGroup;
  constexpr int64_t kMost = kLinearScratch / kOfGroup * kGroup / kLinearChunk * kLinearChunk;
  HWY_ALIGN uint8_t buffer[kLinearChunk / kGroup * amx::kTileBytes];
  HWY_ALIGN float sums[kPanelOuts];
  for (int64_t from = 0; from < a.cols; from += kMost) {
    const int64_t to = std::min(from + kMost, a.cols);
    SplitFew<MR, kPartsOfX>(a, from, to - from, scratch);
    for (int64_t n = begin / kPanelOuts * kPanelOuts; n < end; n += kPanelOuts) {
      const auto panel = panels.panel(n / kPanelOuts);
      const Columns columns = columns_of(n, kPanelOuts, begin, end);
      VF acc[MR];
      for (int r = 0; r < MR; ++r) {
        std::fill_n(sums, kPanelOuts, 0.0F);
        const float* y = a.y + r * a.y_stride;
        if (from > 0) std::copy(y + columns.from, y + columns.to, sums + (columns.from - n));
        acc[r] = hn::Load(DF(), sums);
      }
      const float* x = scratch;
      for (int64_t k = from; k < to; k += kLinearChunk) {
        const int64_t count = std::min(kLinearChunk, to - k);
        const uint8_t* lines = WholeGroups<Panels>(panel, k, count, buffer);
        const uint8_t* ahead = Panels::chunk(panel, k) + kAheadOfReads;
        for (int64_t i = 0; i < count; i += kGroup, x += kOfGroup) {
          GroupTimesRows<MR, Panels::kParts, kPartsOfX>(lines, ahead, x, acc);
          lines += amx::kTileBytes;
          ahead += amx::kTileBytes;
        }
      }
      for (int r = 0; r < MR; ++r) {
        hn::Store(acc[r], DF(), sums);
        float* y = a.y + r * a.y_stride;
        for (int64_t j = columns.from; j < columns.to; ++j) {
          const float sum = sums[j - n];
          y[j] = to == a.cols && a.bias != nullptr ? sum + a.bias[j] : sum;
        }
      }
    }
  }
}

template <class Panels, int kPartsOfX>
void RangeOfParts(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.rows > amx::kRows) {
    ManyByTiles<Panels, kPartsOfX>(a, begin, end, scratch);
  } else if (a.rows > kFewest) {
    FewByTiles<Panels, kPartsOfX>(a, begin, end, scratch);
  } else {
    const WithoutSubnormals mode;
    a.rows == 1 ? FewestRows<Panels, kPartsOfX, 1>(a, begin, end, scratch)
                : FewestRows<Panels, kPartsOfX, 2>(a, begin, end, scratch);
  }
}

template <class Panels>
void RangeByTiles(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (multiplied_by_bf16(a.dtype)) {
    RangeOfParts<Panels, 1>(a, begin, end, scratch);
  } else {
    RangeOfParts<Panels, 3>(a, begin, end, scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
#endif
