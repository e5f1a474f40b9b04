// Products of one row of x with weights of bf16 and f16, bit for bit as tiles compute them
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

// acc plus x · each of the panel's 16 rows over one group. x is [kPartsOfX][kGroup].
template <int kParts, int kPartsOfX>
HWY_INLINE VF GroupTimesRow(const uint8_t* lines, const uint8_t* ahead, const float* x, VF acc) {
  // Products of a part of the weights with a part of x: those with the first part, then those with the
  // second.
  constexpr int kSecond = kParts == 2 ? std::max(1, kPartsOfX - 1) : 0;
  constexpr int kProducts = kPartsOfX + kSecond;
  VF sums[kProducts][2];
  Unroll<kProducts>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    sums[i][0] = hn::Zero(DF());
    sums[i][1] = hn::Zero(DF());
  });
  for (int64_t i = 0; i < amx::kRows; ++i, lines += kPlainLineBytes, ahead += kPlainLineBytes) {
    fetch_ahead(ahead);
    VF w[kParts][2];
    LoadParts<kParts>(lines, w);
    Unroll<kProducts>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
      constexpr int kOfW = n < kPartsOfX ? 0 : 1;
      const float* at = x + (n - kOfW * kPartsOfX) * kGroup + 2 * i;
      Unroll<2>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        sums[n][v] = hn::MulAdd(hn::Set(DF(), at[v]), w[kOfW][v], sums[n][v]);
      });
    });
  }
  Unroll<kProducts>([&](auto n) HWY_ATTR
                    __attribute__((always_inline)) { acc = hn::Add(acc, hn::Add(sums[n][0], sums[n][1])); });
  return acc;
}

// The parts of `count` numbers of x as f32: [group][kPartsOfX][kGroup].
template <int kPartsOfX>
HWY_INLINE void SplitRow(const float* x, int64_t count, float* to) {
  HWY_ALIGN uint16_t parts[kPartsOfX][kGroup];
  for (int64_t k = 0; k < count; k += kGroup) {
    SplitGroup<kPartsOfX>(x + k, count - k, reinterpret_cast<uint8_t*>(parts), sizeof(parts[0]));
    for (int part = 0; part < kPartsOfX; ++part, to += kGroup) {
      for (int64_t i = 0; i < kGroup; i += kStep) {
        const auto halves = hn::LoadU(hn::Rebind<uint16_t, DF>(), parts[part] + i);
        const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(DU(), halves));
        hn::StoreU(hn::BitCast(DF(), bits), DF(), to + i);
      }
    }
  }
}

template <class Panels, int kPartsOfX>
HWY_NOINLINE void OneRow(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  const Panels panels(a);
  constexpr int64_t kOfGroup = int64_t{kPartsOfX} * kGroup;
  constexpr int64_t kMost = kLinearScratch / kOfGroup * kGroup / kLinearChunk * kLinearChunk;
  HWY_ALIGN uint8_t buffer[kLinearChunk / kGroup * amx::kTileBytes];
  HWY_ALIGN float sums[kPanelOuts];
  for (int64_t from = 0; from < a.cols; from += kMost) {
    const int64_t to = std::min(from + kMost, a.cols);
    SplitRow<kPartsOfX>(a.x + from, to - from, scratch);
    for (int64_t n = begin / kPanelOuts * kPanelOuts; n < end; n += kPanelOuts) {
      const auto panel = panels.panel(n / kPanelOuts);
      const Columns columns = columns_of(n, kPanelOuts, begin, end);
      std::fill_n(sums, kPanelOuts, 0.0F);
      if (from > 0) std::copy(a.y + columns.from, a.y + columns.to, sums + (columns.from - n));
      VF acc = hn::Load(DF(), sums);
      const float* x = scratch;
      for (int64_t k = from; k < to; k += kLinearChunk) {
        const int64_t count = std::min(kLinearChunk, to - k);
        const uint8_t* lines = WholeGroups<Panels>(panel, k, count, buffer);
        const uint8_t* ahead = Panels::chunk(panel, k) + kAheadOfReads;
        for (int64_t i = 0; i < count; i += kGroup, x += kOfGroup) {
          acc = GroupTimesRow<Panels::kParts, kPartsOfX>(lines, ahead, x, acc);
          lines += amx::kTileBytes;
          ahead += amx::kTileBytes;
        }
      }
      hn::Store(acc, DF(), sums);
      for (int64_t j = columns.from; j < columns.to; ++j) {
        const float sum = sums[j - n];
        a.y[j] = to == a.cols && a.bias != nullptr ? sum + a.bias[j] : sum;
      }
    }
  }
}

template <class Panels, int kPartsOfX>
void RangeOfParts(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  if (a.rows > amx::kRows) {
    ManyByTiles<Panels, kPartsOfX>(a, begin, end, scratch);
  } else if (a.rows > 1) {
    FewByTiles<Panels, kPartsOfX>(a, begin, end, scratch);
  } else {
    const WithoutSubnormals mode;
    OneRow<Panels, kPartsOfX>(a, begin, end, scratch);
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
