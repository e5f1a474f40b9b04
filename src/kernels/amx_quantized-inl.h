// Integer dot products of quantized weights with many rows of x by tiles (amx_tiles.h): the exact sums of
// quantized_tile-inl.h and byte_tile-inl.h, and their chains of roundings. x of 16 bits is two tiles of
// bytes.

#include <array>
#include <utility>

#include "kernels/amx.h"
#include "kernels/byte_tile-inl.h"
#include "kernels/quantized_tile-inl.h"

#if defined(QWENCH_KERNELS_AMX_QUANTIZED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_AMX_QUANTIZED_INL_H_
#undef QWENCH_KERNELS_AMX_QUANTIZED_INL_H_
#else
#define QWENCH_KERNELS_AMX_QUANTIZED_INL_H_
#endif

#if HWY_TARGET == HWY_AVX3_DL
#include "kernels/amx_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

constexpr int kTileCols = 16;
constexpr int kTilePanelsWide = kTileCols / static_cast<int>(kPanelRows);
constexpr int64_t kPartTileBytes = 8 * kTileCols * 4;  // of a part: 8 quads of each column

// Weights of kTileCols columns and some blocks of 32, as signed bytes: [quad, column].
struct SignedPanel {
  uint8_t* quads;
  float* scales;  // [blocks * kScales, kTileCols]
  float* mins;
};

// f(q, quads) for the quads of a part as signed bytes.
template <class P, class F>
HWY_INLINE void ForSignedQuads(const uint8_t* part, F&& f) {
  if constexpr (P::kBytes) {
    const hn::Repartition<int8_t, DG> d8;
    const auto move = hn::Set(d8, static_cast<int8_t>(P::kMove));
    ForQuads<P>(
        DG(), part, [&](auto q, auto quads) HWY_ATTR __attribute__((always_inline)) {
          f(q, hn::BitCast(DG(), hn::Add(hn::BitCast(d8, quads), move)));
        });
  } else {
    Pairs vectors[P::kBits];
    Unroll<P::kBits>([&](auto v) HWY_ATTR
                     __attribute__((always_inline)) { vectors[v] = LoadPairs(part + v * kVectorBytes); });
    Unroll<8>([&](auto q) HWY_ATTR __attribute__((always_inline)) {
      constexpr int kPair = q / 2 * 4 + q % 2;
      const Pairs first = Moved(P::template Get<kPair>(vectors), P::kMove);
      const Pairs second = Moved(P::template Get<kPair + 2>(vectors), P::kMove);
      f(q, hn::BitCast(DG(), Either(Masked(first, 255), Left<8>(second))));
    });
  }
}

// Writes parts [first, first + parts) of kTilePanelsWide panels, whole blocks.
template <class P>
HWY_NOINLINE void FillSigned(const uint8_t* const* panels, const PanelGeometry<P>& g, int64_t first,
                             int parts, const SignedPanel& panel) {
  static_assert(kPieces == 1);
  for (int w = 0; w < kTilePanelsWide; ++w) {
    const int col = w * static_cast<int>(kPanelRows);
    FillScales<P, kTileCols>(panels[w], g, first, parts, panel.scales + col, panel.mins + col);
    const uint8_t* quants = panels[w] + first * P::kPartBytes;
    for (int part = 0; part < parts; ++part, quants += P::kPartBytes) {
      FetchLines<P::kPartBytes>(quants + g.ahead(first + part).quants);
      uint8_t* to = panel.quads + part * kPartTileBytes + col * 4;
      ForSignedQuads<P>(
          quants, [&](auto q, auto quads) HWY_ATTR __attribute__((always_inline)) {
            hn::StoreU(quads, DG(), reinterpret_cast<int32_t*>(to + q * kTileCols * 4));
          });
    }
  }
}

// A tile of rows of x: kPlanes tiles of bytes for each block, and its scales.
struct TileOfX {
  const uint8_t* bytes;
  const float* scales;  // of its first row
  const float* sums;    // of x, for minima
  int64_t stride;       // of scales, from row to row
};

// Tiles 0 and 1, or 2 and 3, become the sums of products of half or all of a block, which go to `to`.
template <int kPlanes, int kScales, int kTurn>
HWY_INLINE void MultiplyBlock(const uint8_t* x, const uint8_t* w, int32_t* to) {
  constexpr int kFirst = kTurn * 2;
  constexpr int kW = 6 + kTurn;
  amx::load<kW>(w, amx::kRowBytes);
  amx::zero<kFirst>();
  amx::load<4>(x, 32);
  if constexpr (kPlanes == 2) {
    amx::zero<kFirst + 1>();
    amx::load<5>(x + amx::kRows * 32, 32);
    amx::multiply_unsigned<kFirst, 4, kW>();
    amx::multiply_signed<kFirst + 1, 5, kW>();
    amx::store<kFirst + 1>(to + amx::kRows * kTileCols, amx::kRowBytes);
  } else {
    amx::multiply_signed<kFirst, 4, kW>();
  }
  amx::store<kFirst>(to, amx::kRowBytes);
}

// acc[i, column] += x[i] · w[column] over the panel's blocks, for MR rows of x.
template <int MR, int kPlanes, int kScales, bool kMins>
HWY_NOINLINE void TileTimesPanel(const SignedPanel& panel, int parts, const TileOfX& x, float* acc) {
  constexpr int64_t kSums = int64_t{kPlanes} * amx::kRows * kTileCols;
  constexpr int64_t kStepOfW = kPartTileBytes / kScales;
  const DF df;
  const DI di;
  HWY_ALIGN int32_t sums[2][kSums];
  VF total[MR];
  Unroll<MR>([&](auto i) HWY_ATTR
             __attribute__((always_inline)) { total[i] = hn::LoadU(df, acc + i * kTileCols); });
  const int blocks = parts * kScales;
  const auto multiply = [&](int block, auto turn) HWY_ATTR __attribute__((always_inline)) {
    if (block >= blocks) return;
    const int64_t half = block % kScales * 16;
    MultiplyBlock<kPlanes, kScales, turn>(
        x.bytes + block / kScales * int64_t{kPlanes} * amx::kRows * 32 + half, panel.quads + block * kStepOfW,
        sums[turn]);
  };
  const auto add = [&](int block, const int32_t* of_block) HWY_ATTR __attribute__((always_inline)) {
    const VF scale_w = hn::LoadU(df, panel.scales + block * kTileCols);
    const float* scales_x = x.scales + block / kScales;
    Unroll<MR>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      VI sum = hn::Load(di, of_block + i * kTileCols);
      if constexpr (kPlanes == 2) {
        const VI high = hn::Load(di, of_block + (amx::kRows + i) * kTileCols);
        sum = hn::Add(sum, hn::ShiftLeft<8>(high));
      }
      total[i] = Chain(df, sum, scale_w, hn::Set(df, scales_x[i * x.stride]), total[i]);
      if constexpr (kMins) {
        const VF of_x = hn::Set(df, x.sums[i * x.stride * kScales + block]);
        total[i] = hn::MulAdd(hn::LoadU(df, panel.mins + block * kTileCols), of_x, total[i]);
      }
    });
  };
  // The next block's products are on their way while these are added.
  const std::integral_constant<int, 0> even;
  const std::integral_constant<int, 1> odd;
  multiply(0, even);
  for (int block = 0; block < blocks; block += 2) {
    multiply(block + 1, odd);
    add(block, sums[0]);
    multiply(block + 2, even);
    if (block + 1 < blocks) add(block + 1, sums[1]);
  }
  Unroll<MR>([&](auto i) HWY_ATTR
             __attribute__((always_inline)) { hn::StoreU(total[i], df, acc + i * kTileCols); });
}

using SignedTileFunction = void (*)(const SignedPanel&, int, const TileOfX&, float*);

// For 4, 8, 12 and 16 rows.
template <int kPlanes, int kScales, bool kMins, int... I>
constexpr std::array<SignedTileFunction, sizeof...(I)> signed_tiles(std::integer_sequence<int, I...>) {
  return {&TileTimesPanel<4 * I + 4, kPlanes, kScales, kMins>...};
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
#endif
