#include "kernels/kv_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/targets.h"
#include "kernels/unpack.h"
#include "qwench/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kv_cells.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// q[i] = x[i] / scale to nearest, for 32 elements; returns the scale as f16 bits.
uint16_t QuantizeQ8(const float* x, int8_t* q) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  VF largest = hn::Zero(d);
  VF zeros = hn::Zero(d);  // x * 0 is 0 for finite x, else NaN
  for (int i = 0; i < kQ8Block; i += static_cast<int>(kLanes)) {
    const VF v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, hn::Abs(v));
    zeros = hn::MulAdd(v, hn::Zero(d), zeros);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::StoreU(largest, d, lanes);
  const float scale = *std::max_element(lanes, lanes + kLanes) / 127.0F;
  if (!(SumLanes(zeros) == 0.0F)) {
    std::fill_n(q, kQ8Block, int8_t{0});
    return f32_to_f16(std::numeric_limits<float>::quiet_NaN());
  }
  const VF inverse = hn::Set(d, scale > 0.0F ? 1.0F / scale : 0.0F);
  for (int i = 0; i < kQ8Block; i += static_cast<int>(kLanes)) {
    const VF scaled = hn::Min(hn::Mul(hn::LoadU(d, x + i), inverse), hn::Set(d, 127.0F));
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Max(scaled, hn::Set(d, -127.0F)))), d8, q + i);
  }
  return f32_to_f16(scale);
}

void UnpackKeysQ8(const uint8_t* block, int head_dim, float* dst) {
  const DF d;
  for (int c = 0; c < head_dim; c += kQ8Block, block += kQ8KeyBytes) {
    HWY_ALIGN float scales[kKvBlock];
    for (int i = 0; i < kKvBlock; i += static_cast<int>(kLanes))
      hn::StoreU(ElementF16::Load(block + 2 * i), d, scales + i);
    const uint8_t* integers = block + 2 * kKvBlock;
    for (int i = 0; i < kQ8Block * kKvBlock; i += static_cast<int>(kLanes)) {
      const VF scale = hn::LoadU(d, scales + i % kKvBlock);
      hn::StoreU(hn::Mul(ToFloat(LoadSignedBytes(integers + i)), scale), d, dst + c * kKvBlock + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(QuantizeQ8);
HWY_EXPORT(UnpackKeysQ8);
namespace {

constexpr int kPiece = 128;  // elements that are converted at a time

template <typename Cell>
void scatter(const std::byte* from, int count, int first, int slot, std::byte* block) {
  for (int i = 0; i < count; ++i)
    std::memcpy(block + (size_t(first + i) * kKvBlock + size_t(slot)) * sizeof(Cell),
                from + size_t(i) * sizeof(Cell), sizeof(Cell));
}

}  // namespace

void check_kv_cells(DType cell, int head_dim) {
  if (is_quantized(cell) && cell != DType::q8_0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the KV cache cannot be of type {}; choose f16, f32, bf16 or q8_0", name(cell)));
  }
  if (cell == DType::q8_0 && head_dim % kQ8Block != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the KV cache cannot be of type q8_0 for this model: it shares a scale among {} "
                            "elements of a head, and head_dim {} is not a multiple of that; choose f16",
                            kQ8Block, head_dim));
  }
}

void store_key(DType cell, const float* x, int head_dim, int slot, std::byte* block) {
  if (cell == DType::q8_0) {
    for (int c = 0; c < head_dim; c += kQ8Block, block += kQ8KeyBytes) {
      int8_t q[kQ8Block];
      const uint16_t scale = HWY_DYNAMIC_DISPATCH(QuantizeQ8)(x + c, q);
      std::memcpy(block + 2 * slot, &scale, sizeof(scale));
      std::byte* integers = block + 2 * kKvBlock + slot;
      for (int i = 0; i < kQ8Block; ++i) integers[i * kKvBlock] = static_cast<std::byte>(q[i]);
    }
    return;
  }
  std::byte cells[kPiece * sizeof(float)];
  for (int c = 0; c < head_dim; c += kPiece) {
    const int count = std::min(kPiece, head_dim - c);
    pack(cell, x + c, count, cells);
    if (cell == DType::f32) {
      scatter<uint32_t>(cells, count, c, slot, block);
    } else {
      scatter<uint16_t>(cells, count, c, slot, block);
    }
  }
}

void store_value(DType cell, const float* x, int head_dim, int slot, std::byte* block) {
  std::byte* row = block + static_cast<uint64_t>(slot) * bytes_of(cell, static_cast<uint64_t>(head_dim));
  if (cell != DType::q8_0) {
    pack(cell, x, head_dim, row);
    return;
  }
  for (int c = 0; c < head_dim; c += kQ8Block, row += kQ8ValueBytes) {
    int8_t q[kQ8Block];
    const uint16_t scale = HWY_DYNAMIC_DISPATCH(QuantizeQ8)(x + c, q);
    std::memcpy(row, &scale, sizeof(scale));
    std::memcpy(row + sizeof(scale), q, sizeof(q));
  }
}

void unpack_keys(DType cell, const std::byte* block, int head_dim, float* dst) {
  if (cell == DType::q8_0) {
    HWY_DYNAMIC_DISPATCH(UnpackKeysQ8)(reinterpret_cast<const uint8_t*>(block), head_dim, dst);
  } else {
    unpack(cell, block, 0, int64_t{head_dim} * kKvBlock, dst);
  }
}

void unpack_values(DType cell, const std::byte* block, int head_dim, int count, int64_t stride, float* dst) {
  if (stride == head_dim) {
    unpack(cell, block, 0, int64_t{count} * head_dim, dst);
    return;
  }
  for (int i = 0; i < count; ++i) unpack(cell, block, int64_t{i} * head_dim, head_dim, dst + i * stride);
}

}  // namespace qwench
#endif
