#include "kernels/quantized_rows.h"

#include "kernels/targets.h"

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

void QuantizeRow(const float* x, int64_t cols, int16_t* values, float* scales, float* sums,
                 float* half_sums) {
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
  return static_cast<uint64_t>(rows) * static_cast<uint64_t>(whole_blocks(cols)) * kBlockBytes;
}

QuantizedRows QuantizedRows::in(std::byte* memory, int64_t rows, int64_t cols) {
  const int64_t blocks = rows * whole_blocks(cols);
  QuantizedRows q;
  q.stride = whole_blocks(cols) * kBlock;
  q.values = reinterpret_cast<int16_t*>(memory);
  q.scales = reinterpret_cast<float*>(memory + blocks * kBlock * static_cast<int64_t>(sizeof(int16_t)));
  q.sums = q.scales + blocks;
  q.half_sums = q.sums + blocks;
  return q;
}

void quantize_row(const float* x, int64_t cols, int64_t r, const QuantizedRows& rows) {
  const int64_t block = r * rows.stride / QuantizedRows::kBlock;
  HWY_DYNAMIC_DISPATCH(QuantizeRow)
  (x, cols, rows.values + r * rows.stride, rows.scales + block, rows.sums + block,
   rows.half_sums + 2 * block);
}

}  // namespace qwench
#endif
