// Products of rows of x with weights of bf16 and f16 by tiles (amx_tiles.h). Numbers are cut into parts of
// bf16 that add up to them exactly: x into three, f16 into two. For each output one chain goes over groups of
// 32 along k, as the instruction sums them up: the first part of the weights with all parts of x, then the
// second with the first two; what is left out is below 2^-24 of a product. It is the same for one row and for
// many. Activations of 8 bits are one part, x rounded to bf16.

#include "kernels/amx.h"
#include "kernels/plain_tile-inl.h"

#if defined(QWENCH_KERNELS_AMX_PLAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QWENCH_KERNELS_AMX_PLAIN_INL_H_
#undef QWENCH_KERNELS_AMX_PLAIN_INL_H_
#else
#define QWENCH_KERNELS_AMX_PLAIN_INL_H_
#endif

#if HWY_TARGET == HWY_AVX3_DL
#include "kernels/amx_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// Numbers of a row in a tile.
constexpr int64_t kGroup = 32;
// Numbers along k that are summed up in tiles before sums go to y and come back, which costs a third of the
// time with 256 of them.
constexpr int64_t kMostNumbers = 1024;

// The nearest bf16, ties to even, in the upper half; what is not finite stays so.
HWY_INLINE hn::Vec<DU> RoundToBf16(VF x) {
  const auto bits = hn::BitCast(DU(), x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(DU(), 0x7FFFU)));
  return hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(x)), bits, rounded);
}

// The parts of 32 numbers of x, `count` of which are there, each at `to` + part * stride: as many as add up
// to it, or one.
template <int kPartsOfX>
HWY_INLINE void SplitGroup(const float* x, int64_t count, uint8_t* to, int64_t stride) {
  const hn::Repartition<uint16_t, DF> d16;
  const auto mask = hn::Set(DU(), 0xFFFF0000U);
  VF rest[2] = {hn::LoadU(DF(), x), count > kStep ? hn::LoadU(DF(), x + kStep) : hn::Zero(DF())};
  for (int part = 0; part < kPartsOfX; ++part, to += stride) {
    hn::Vec<decltype(d16)> highs[2];
    for (int i = 0; i < 2; ++i) {
      const auto high = kPartsOfX == 1 ? RoundToBf16(rest[i]) : hn::And(hn::BitCast(DU(), rest[i]), mask);
      rest[i] = hn::Sub(rest[i], hn::BitCast(DF(), high));
      highs[i] = hn::BitCast(d16, high);
    }
    hn::StoreU(hn::ConcatOdd(d16, highs[1], highs[0]), d16, reinterpret_cast<uint16_t*>(to));
  }
}

// Rows of x cut into parts: tiles [row / height][group][part], each `height` x 32.
template <int kPartsOfX>
class SplitRows {
 public:
  SplitRows(float* memory, int height) : at_(reinterpret_cast<uint8_t*>(memory)), height_(height) {}

  // How many numbers of `height` rows fit, a multiple of kLinearChunk, and how many tiles of so many numbers.
  static int64_t most_numbers(int64_t height) {
    return kMemory / (kPartsOfX * height * amx::kRowBytes) * kGroup / kLinearChunk * kLinearChunk;
  }
  static int64_t most_tiles(int64_t numbers) {
    return kMemory / (numbers / kGroup * kPartsOfX * amx::kTileBytes);
  }

  // Numbers [k, k + count) of rows [first, first + rows).
  void split(const LinearArgs& a, int64_t first, int64_t rows, int64_t k, int64_t count) {
    groups_ = (count + kGroup - 1) / kGroup;
    const int64_t padded = (rows + height_ - 1) / height_ * height_;
    for (int64_t r = 0; r < padded; ++r) {
      uint8_t* to = at_ + r / height_ * groups_ * group_bytes() + r % height_ * amx::kRowBytes;
      const float* x = a.x + (first + r) * a.x_stride + k;
      for (int64_t g = 0; g < groups_; ++g, to += group_bytes(), x += kGroup) {
        if (r < rows) {
          SplitGroup<kPartsOfX>(x, count - g * kGroup, to, part_bytes());
        } else {
          for (int part = 0; part < kPartsOfX; ++part)
            std::memset(to + part * part_bytes(), 0, amx::kRowBytes);
        }
      }
    }
  }

  const uint8_t* tile(int64_t tile) const { return at_ + tile * groups_ * group_bytes(); }
  int64_t groups() const { return groups_; }
  int64_t part_bytes() const { return height_ * amx::kRowBytes; }
  int64_t group_bytes() const { return kPartsOfX * part_bytes(); }

 private:
  static constexpr int64_t kMemory = kLinearScratch * int64_t{sizeof(float)};
  static_assert(kMemory >= kMostNumbers / kGroup * kPartsOfX * amx::kTileBytes);

  uint8_t* at_;
  int64_t height_;
  int64_t groups_ = 0;
};

// A group of a panel of f16, which may lie where `to` begins, as two tiles of bf16.
HWY_INLINE void SplitHalves(const uint8_t* lines, uint8_t* to) {
  const auto mask = hn::Set(DU(), 0xFFFF0000U);
  for (int64_t line = amx::kRows - 1; line >= 0; --line) {
    VF w[2];
    LineF16::Load(lines + line * kPlainLineBytes, 0, w);
    const auto even = hn::BitCast(DU(), w[0]);
    const auto odd = hn::And(hn::BitCast(DU(), w[1]), mask);
    // What is left of a number has few bits: those of bf16.
    const VF even_rest = hn::Sub(w[0], hn::BitCast(DF(), hn::And(even, mask)));
    const VF odd_rest = hn::Sub(w[1], hn::BitCast(DF(), odd));
    const auto rests = hn::Or(hn::ShiftRight<16>(hn::BitCast(DU(), even_rest)), hn::BitCast(DU(), odd_rest));
    auto* at = reinterpret_cast<uint32_t*>(to + line * kPlainLineBytes);
    hn::StoreU(rests, DU(), at + amx::kTileBytes / 4);
    hn::StoreU(hn::Or(hn::ShiftRight<16>(even), odd), DU(), at);
  }
}

// Lines of a panel for numbers [k, k + count), a whole number of groups: in place, or in `buffer`.
template <class Panels>
HWY_INLINE const uint8_t* WholeGroups(const typename Panels::Panel& panel, int64_t k, int64_t count,
                                      uint8_t* buffer) {
  const uint8_t* lines = Panels::lines(panel, k, count, buffer);
  const int64_t there = (count + 1) / 2 * kPlainLineBytes;
  const int64_t wanted = (count + kGroup - 1) / kGroup * amx::kTileBytes;
  if (there != wanted) {
    if (lines != buffer) std::memcpy(buffer, lines, static_cast<size_t>(there));
    std::memset(buffer + there, 0, static_cast<size_t>(wanted - there));
    lines = buffer;
  }
  return lines;
}

// The same as tiles of their parts, where there are two.
template <class Panels>
HWY_INLINE const uint8_t* WholeTiles(const typename Panels::Panel& panel, int64_t k, int64_t count,
                                     uint8_t* buffer) {
  const uint8_t* lines = WholeGroups<Panels>(panel, k, count, buffer);
  if constexpr (Panels::kParts == 1) {
    return lines;
  } else {
    // From the last to the first, as parts take twice the room of what they are made of.
    for (int64_t g = (count + kGroup - 1) / kGroup - 1; g >= 0; --g)
      SplitHalves(lines + g * amx::kTileBytes, buffer + g * 2 * amx::kTileBytes);
    return buffer;
  }
}

// Sums of a tile's rows and a panel's columns on their way between tiles and y.
struct TileOfY {
  const LinearArgs& a;
  int64_t first;  // row
  int64_t rows;
  int64_t n;        // first column of the panel
  Columns columns;  // those that are wanted
  bool last;        // of the chunks of k

  bool in_place(int64_t height) const {
    return rows == height && columns.from == n && columns.to == n + kPanelOuts &&
           !(last && a.bias != nullptr);
  }
  float* y() const { return a.y + first * a.y_stride + n; }

  template <int kTile>
  void load(int64_t height) const {
    if (in_place(height)) return amx::load<kTile>(y(), a.y_stride * 4);
    HWY_ALIGN float sums[amx::kRows * kPanelOuts] = {};
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = columns.from; j < columns.to; ++j)
        sums[r * kPanelOuts + j - n] = y()[r * a.y_stride + j - n];
    }
    amx::load<kTile>(sums, amx::kRowBytes);
  }

  template <int kTile>
  void store(int64_t height) const {
    if (in_place(height)) return amx::store<kTile>(y(), a.y_stride * 4);
    HWY_ALIGN float sums[amx::kRows * kPanelOuts];
    amx::store<kTile>(sums, amx::kRowBytes);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = columns.from; j < columns.to; ++j) {
        const float sum = sums[r * kPanelOuts + j - n];
        y()[r * a.y_stride + j - n] = last && a.bias != nullptr ? sum + a.bias[j] : sum;
      }
    }
  }
};

// How far ahead of what is read each of a few panels is fetched, in bytes.
constexpr int64_t kAheadOfPanels = 4096;
constexpr int64_t kSoon = 2048;

// At most 16 rows of x: four panels at a time, so that as many chains hide the instruction's latency.
template <class Panels, int kPartsOfX>
void FewByTiles(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int kTogether = 4;
  const auto height = static_cast<int>(a.rows);
  const amx::Shapes shapes({height, height, height, height, height, height, height, amx::kRows},
                           {64, 64, 64, 64, 64, 64, 64, 64});
  const Panels panels(a);
  const int64_t last_panel = (end - 1) / kPanelOuts;
  // Of each panel, what is read some lines later, or at the beginning of the next one that is read.
  const int64_t panel_bytes = a.cols / kGroup * Panels::kGroupBytes;
  const auto ahead_of = [&](int64_t k) {
    const int64_t at = k / kGroup * Panels::kGroupBytes + kAheadOfPanels;
    return kAheadOfPanels + (at < panel_bytes ? 0 : (kTogether - 1) * panel_bytes);
  };
  SplitRows<kPartsOfX> rows(scratch, height);
  const int64_t most = SplitRows<kPartsOfX>::most_numbers(height);
  HWY_ALIGN uint8_t buffers[kTogether][kLinearChunk / kGroup * amx::kTileBytes];
  HWY_ALIGN uint8_t parts[2][kTogether][Panels::kParts * amx::kTileBytes];
  for (int64_t from = 0; from < a.cols; from += most) {
    const int64_t to = std::min(from + most, a.cols);
    rows.split(a, 0, a.rows, from, to - from);
    for (int64_t n = begin / kPanelOuts * kPanelOuts; n < end; n += kTogether * kPanelOuts) {
      const auto of_y = [&](int64_t p) {
        const int64_t at = n + p * kPanelOuts;
        return TileOfY{a, 0, a.rows, at, columns_of(at, kPanelOuts, begin, end), to == a.cols};
      };
      Unroll<kTogether>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
        if (from == 0 || n + p * kPanelOuts >= end) {
          amx::zero<p>();
        } else {
          of_y(p).template load<p>(height);
        }
      });
      const uint8_t* x = rows.tile(0);
      for (int64_t k = from; k < to; k += kLinearChunk) {
        const int64_t count = std::min(kLinearChunk, to - k);
        const uint8_t* lines[kTogether];
        const uint8_t* ahead[kTogether];
        for (int p = 0; p < kTogether; ++p) {
          const auto panel = panels.panel(std::min(n / kPanelOuts + p, last_panel));
          ahead[p] = Panels::chunk(panel, k) + ahead_of(k);
          lines[p] = WholeGroups<Panels>(panel, k, count, buffers[p]);
        }
        const int64_t groups = (count + kGroup - 1) / kGroup;
        if constexpr (Panels::kParts == 2) {
          for (int p = 0; p < kTogether; ++p) SplitHalves(lines[p], parts[0][p]);
        }
        for (int64_t g = 0; g < groups; ++g, x += rows.group_bytes()) {
          amx::load<4>(x, amx::kRowBytes);
          if constexpr (kPartsOfX == 3) {
            amx::load<5>(x + rows.part_bytes(), amx::kRowBytes);
            amx::load<6>(x + 2 * rows.part_bytes(), amx::kRowBytes);
          }
          Unroll<kTogether>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
            const uint8_t* w = lines[p] + g * amx::kTileBytes;
            if constexpr (Panels::kParts == 1) amx::load<7>(w, amx::kRowBytes);
            for (int64_t line = 0; line < Panels::kGroupBytes; line += kPlainLineBytes) {
              fetch_ahead(ahead[p] + g * Panels::kGroupBytes + line);
              if (Panels::kInPlace) __builtin_prefetch(w + kSoon + line, 0, 3);
            }
            if constexpr (Panels::kParts == 2) {
              // The next group's are split while this one's are multiplied.
              if (g + 1 < groups) SplitHalves(w + amx::kTileBytes, parts[(g + 1) % 2][p]);
              w = parts[g % 2][p];
              amx::load<7>(w, amx::kRowBytes);
            }
            amx::multiply_bf16<p, 4, 7>();
            if constexpr (kPartsOfX == 3) {
              amx::multiply_bf16<p, 5, 7>();
              amx::multiply_bf16<p, 6, 7>();
            }
            if constexpr (Panels::kParts == 2) {
              amx::load<7>(w + amx::kTileBytes, amx::kRowBytes);
              amx::multiply_bf16<p, 4, 7>();
              if constexpr (kPartsOfX == 3) amx::multiply_bf16<p, 5, 7>();
            }
          });
        }
      }
      Unroll<kTogether>([&](auto p) HWY_ATTR __attribute__((always_inline)) {
        if (n + p * kPanelOuts < end) of_y(p).template store<p>(height);
      });
    }
  }
}

// Sums of 32 rows of x, or of 16 where not `both`, and two panels whose weights have so many parts.
template <bool kBoth, int kParts, int kPartsOfX>
HWY_INLINE void TilesTimesPanels(const SplitRows<kPartsOfX>& rows, int64_t tile, const uint8_t* const* lines,
                                 const uint8_t* const* ahead, int64_t ahead_lines) {
  const uint8_t* x0 = rows.tile(tile);
  const uint8_t* x1 = kBoth ? rows.tile(tile + 1) : x0;
  const uint8_t* w0 = lines[0];
  const uint8_t* w1 = lines[1];
  int64_t fetched = 0;
  for (int64_t g = 0; g < rows.groups(); ++g, x0 += rows.group_bytes(), x1 += rows.group_bytes()) {
    for (int64_t i = 0; i < ahead_lines; ++i, fetched += kPlainLineBytes) {
      fetch_ahead(ahead[0] + fetched);
      fetch_ahead(ahead[1] + fetched);
    }
    for (int part = 0; part < kParts; ++part, w0 += amx::kTileBytes, w1 += amx::kTileBytes) {
      amx::load<6>(w0, amx::kRowBytes);
      amx::load<7>(w1, amx::kRowBytes);
      for (int of_x = 0; of_x < std::max(1, kPartsOfX - part); ++of_x) {
        amx::load<4>(x0 + of_x * amx::kTileBytes, amx::kRowBytes);
        if constexpr (kBoth) amx::load<5>(x1 + of_x * amx::kTileBytes, amx::kRowBytes);
        amx::multiply_bf16<0, 4, 6>();
        amx::multiply_bf16<1, 4, 7>();
        if constexpr (kBoth) {
          amx::multiply_bf16<2, 5, 6>();
          amx::multiply_bf16<3, 5, 7>();
        }
      }
    }
  }
}

template <class Panels, int kPartsOfX>
void ManyByTiles(const LinearArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int kTogether = 2;
  const amx::Shapes shapes({16, 16, 16, 16, 16, 16, 16, 16}, {64, 64, 64, 64, 64, 64, 64, 64});
  const Panels panels(a);
  const int64_t last_panel = (end - 1) / kPanelOuts;
  const int64_t all_tiles = (a.rows + amx::kRows - 1) / amx::kRows;
  SplitRows<kPartsOfX> rows(scratch, amx::kRows);
  const int64_t most = std::min((a.cols + kLinearChunk - 1) / kLinearChunk * kLinearChunk, kMostNumbers);
  const int64_t tiles_together = SplitRows<kPartsOfX>::most_tiles(most);
  const int64_t blocks = (all_tiles + tiles_together - 1) / tiles_together;
  HWY_ALIGN uint8_t buffers[kTogether][kMostNumbers / kGroup * Panels::kParts * amx::kTileBytes];
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = all_tiles * b / blocks * amx::kRows;
    const int64_t last = std::min(all_tiles * (b + 1) / blocks * amx::kRows, a.rows);
    const int64_t tiles = (last - first + amx::kRows - 1) / amx::kRows;
    for (int64_t k = 0; k < a.cols; k += most) {
      const int64_t count = std::min(most, a.cols - k);
      rows.split(a, first, last - first, k, count);
      for (int64_t n = begin / kPanelOuts * kPanelOuts; n < end; n += kTogether * kPanelOuts) {
        const uint8_t* lines[kTogether];
        const uint8_t* ahead[kTogether];
        for (int p = 0; p < kTogether; ++p) {
          const auto panel_at = [&](int64_t i) { return panels.panel(std::min(i, last_panel)); };
          lines[p] = WholeTiles<Panels>(panel_at(n / kPanelOuts + p), k, count, buffers[p]);
          ahead[p] = panels.chunk(panel_at(n / kPanelOuts + p + kTogether), k);
        }
        const int64_t pairs = (tiles + 1) / 2;
        const int64_t ahead_lines = (Panels::kGroupBytes / kPlainLineBytes + pairs - 1) / pairs;
        for (int64_t tile = 0; tile < tiles; tile += 2) {
          const bool both = tile + 1 < tiles;
          const auto of_y = [&](int64_t i) {
            const int64_t row = first + (tile + i / 2) * amx::kRows;
            const int64_t at = n + i % 2 * kPanelOuts;
            return TileOfY{a,
                           row,
                           std::min<int64_t>(amx::kRows, last - row),
                           at,
                           columns_of(at, kPanelOuts, begin, end),
                           k + count == a.cols};
          };
          const auto is_there = [&](int64_t i) { return (i < 2 || both) && n + i % 2 * kPanelOuts < end; };
          Unroll<4>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
            if (k == 0) {
              amx::zero<i>();
            } else if (is_there(i)) {
              of_y(i).template load<i>(amx::kRows);
            }
          });
          if (both) {
            TilesTimesPanels<true, Panels::kParts, kPartsOfX>(rows, tile, lines, ahead, ahead_lines);
          } else {
            TilesTimesPanels<false, Panels::kParts, kPartsOfX>(rows, tile, lines, ahead, ahead_lines);
          }
          for (int p = 0; p < kTogether; ++p) ahead[p] += rows.groups() * ahead_lines * kPlainLineBytes;
          Unroll<4>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
            if (is_there(i)) of_y(i).template store<i>(amx::kRows);
          });
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#endif
#endif
