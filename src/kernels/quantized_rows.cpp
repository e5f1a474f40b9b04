#include "kernels/quantized_rows.h"

#include "kernels/activation_tiles.h"
#include "kernels/byte_rows.h"
#include "kernels/vnni_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantized_rows.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/activation_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// The low and the high bytes of a block's values, in the order of ByteRows.
HWY_INLINE void StoreTiles(const int16_t* values, uint8_t* low, uint8_t* high) {
#if HWY_TARGET == HWY_AVX3_DL
  const hn::FixedTag<uint8_t, 32> d8;
  const auto* bytes = reinterpret_cast<const uint8_t*>(values);
  const auto first = hn::LoadU(d8, bytes);
  const auto second = hn::LoadU(d8, bytes + 32);
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
  const auto order = hn::LoadDup128(d8, kOrder);
  hn::StoreU(hn::TableLookupBytes(hn::ConcatEven(d8, second, first), order), d8, low);
  hn::StoreU(hn::TableLookupBytes(hn::ConcatOdd(d8, second, first), order), d8, high);
#else
  for (int i = 0; i < 32; ++i) {
    const auto value = static_cast<uint16_t>(values[i / 8 * 8 + ByteRows::kOrder[i % 8]]);
    low[i] = static_cast<uint8_t>(value);
    high[i] = static_cast<uint8_t>(value >> 8);
  }
#endif
}

// `tiles` may be null.
void QuantizeRow(const float* x, int64_t cols, int16_t* values, float* scales, float* sums, float* half_sums,
                 uint8_t* tiles) {
  const DI di;
  const hn::Rebind<int16_t, DF> d16;
  for (int64_t k = 0; k < cols; k += 32, x += 32, values += 32) {
    const auto [scale, inverse] = ScaleOfBlock(x, 32767.0F);
    VI half[2] = {hn::Zero(di), hn::Zero(di)};
    for (int i = 0; i < kBlockVectors; ++i) {
      const VI rounded = RoundedOfBlock(x, i, inverse);
      hn::StoreU(hn::DemoteTo(d16, rounded), d16, values + i * kStep);
      half[i * 2 / kBlockVectors] = hn::Add(half[i * 2 / kBlockVectors], rounded);
    }
    const auto low = static_cast<float>(hn::GetLane(hn::SumOfLanes(di, half[0])));
    const auto high = static_cast<float>(hn::GetLane(hn::SumOfLanes(di, half[1])));
    *scales++ = scale;
    *sums++ = scale * (low + high);
    *half_sums++ = scale * low;
    *half_sums++ = scale * high;
    if (tiles != nullptr) {
      StoreTiles(values, tiles, tiles + ActivationTiles::kPlaneBytes);
      tiles += 2 * ActivationTiles::kPlaneBytes;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(QuantizeRow);
namespace {

int64_t whole_blocks(int64_t cols) { return (cols + QuantizedRows::kBlock - 1) / QuantizedRows::kBlock; }

}  // namespace

uint64_t QuantizedRows::bytes(int64_t rows, int64_t cols) {
  constexpr uint64_t kBlockBytes = kBlock * sizeof(int16_t) + 4 * sizeof(float);
  const auto room = static_cast<uint64_t>(ActivationTiles::rows_with_room(rows));
  return room * static_cast<uint64_t>(whole_blocks(cols)) * kBlockBytes +
         static_cast<uint64_t>(ActivationTiles::bytes(rows, whole_blocks(cols), 2));
}

QuantizedRows QuantizedRows::in(std::byte* memory, int64_t rows, int64_t cols) {
  const int64_t blocks = ActivationTiles::rows_with_room(rows) * whole_blocks(cols);
  QuantizedRows q;
  q.stride = whole_blocks(cols) * kBlock;
  const int64_t tiles = ActivationTiles::bytes(rows, whole_blocks(cols), 2);
  if (tiles > 0) q.tiles = reinterpret_cast<uint8_t*>(memory);
  memory += tiles;
  q.values = reinterpret_cast<int16_t*>(memory);
  q.scales = reinterpret_cast<float*>(memory + blocks * kBlock * static_cast<int64_t>(sizeof(int16_t)));
  q.sums = q.scales + blocks;
  q.half_sums = q.sums + blocks;
  return q;
}

void quantize_row(const float* x, int64_t cols, int64_t r, const QuantizedRows& rows) {
  const int64_t blocks = rows.stride / QuantizedRows::kBlock;
  const int64_t block = r * blocks;
  uint8_t* tiles = amx_in_use() ? rows.tiles + ActivationTiles::offset(r, blocks, 2) : nullptr;
  HWY_DYNAMIC_DISPATCH(QuantizeRow)
  (x, cols, rows.values + r * rows.stride, rows.scales + block, rows.sums + block, rows.half_sums + 2 * block,
   tiles);
}

}  // namespace qwench
#endif
