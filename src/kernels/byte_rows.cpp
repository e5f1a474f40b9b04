#include "kernels/byte_rows.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "kernels/activation_tiles.h"
#include "kernels/vnni_targets.h"
#include "qwench/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/byte_rows.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/activation_block-inl.h"
#include "kernels/quantized_panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

// `tiles` may be null.
void QuantizeToBytes(const float* x, int64_t cols, int8_t* values, float* scales, float* totals, float* sums,
                     uint8_t* tiles) {
  const DI di;
  HWY_ALIGN int32_t rounded[32];
  for (int64_t k = 0; k < cols; k += 32, x += 32, values += 32) {
    const auto [scale, inverse] = ScaleOfBlock(x, 127.0F);
    VI total = hn::Zero(di);
    for (int i = 0; i < kBlockVectors; ++i) {
      const VI whole = RoundedOfBlock(x, i, inverse);
      hn::Store(whole, di, rounded + i * kStep);
      total = hn::Add(total, whole);
    }
    for (int i = 0; i < 32; ++i)
      values[i] = static_cast<int8_t>(rounded[i / 8 * 8 + ByteRows::kOrder[i % 8]]);
    const auto sum = static_cast<float>(hn::GetLane(hn::SumOfLanes(di, total)));
    *scales++ = scale;
    *totals++ = sum;
    *sums++ = scale * sum;
    if (tiles != nullptr) {
      std::memcpy(tiles, values, 32);
      tiles += ActivationTiles::kPlaneBytes;
    }
  }
}

bool MultipliedByBytes(DType dtype) {
  bool bytes = false;
  WithPanelType(dtype, [&](auto type) { bytes = decltype(type)::kBytes; });
  return bytes;
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(QuantizeToBytes);
HWY_EXPORT(MultipliedByBytes);
namespace {

int bits_in_use = 16;
bool bits_were_set = false;

int64_t blocks_of_bytes(int64_t cols) { return (cols + ByteRows::kBlock - 1) / ByteRows::kBlock; }

}  // namespace

uint64_t ByteRows::bytes(int64_t rows, int64_t cols) {
  constexpr uint64_t kBlockBytes = kBlock + 3 * sizeof(float);
  const auto room = static_cast<uint64_t>(ActivationTiles::rows_with_room(rows));
  return room * static_cast<uint64_t>(blocks_of_bytes(cols)) * kBlockBytes +
         static_cast<uint64_t>(ActivationTiles::bytes(rows, blocks_of_bytes(cols), 1));
}

ByteRows ByteRows::in(std::byte* memory, int64_t rows, int64_t cols) {
  const int64_t blocks = ActivationTiles::rows_with_room(rows) * blocks_of_bytes(cols);
  ByteRows b;
  b.stride = blocks_of_bytes(cols) * kBlock;
  const int64_t tiles = ActivationTiles::bytes(rows, blocks_of_bytes(cols), 1);
  if (tiles > 0) b.tiles = reinterpret_cast<uint8_t*>(memory);
  memory += tiles;
  b.values = reinterpret_cast<int8_t*>(memory);
  b.scales = reinterpret_cast<float*>(memory + blocks * kBlock);
  b.totals = b.scales + blocks;
  b.sums = b.totals + blocks;
  return b;
}

void quantize_row_to_bytes(const float* x, int64_t cols, int64_t r, const ByteRows& rows) {
  const int64_t blocks = rows.stride / ByteRows::kBlock;
  const int64_t block = r * blocks;
  uint8_t* tiles = amx_in_use() ? rows.tiles + ActivationTiles::offset(r, blocks, 1) : nullptr;
  HWY_DYNAMIC_DISPATCH(QuantizeToBytes)
  (x, cols, rows.values + r * rows.stride, rows.scales + block, rows.totals + block, rows.sums + block,
   tiles);
}

bool multiplied_by_bytes(DType quantized) {
  return bits_in_use == 8 && is_quantized(quantized) && HWY_DYNAMIC_DISPATCH(MultipliedByBytes)(quantized);
}

bool multiplied_by_bf16(DType dtype) {
  return bits_in_use == 8 && amx_in_use() && (dtype == DType::bf16 || dtype == DType::f16);
}

void set_activation_bits(int bits) {
  if (bits != 8 && bits != 16)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("activations are quantized to 8 or 16 bits, not {}", bits));
  bits_in_use = bits;
  bits_were_set = true;
}

int activation_bits() { return bits_in_use; }

void set_activation_bits_from_environment() {
  const char* bits = std::getenv("QWENCH_ACTIVATION_BITS");
  if (bits_were_set || bits == nullptr || *bits == '\0') return;
  const std::string_view text(bits);
  if (text != "8" && text != "16")
    throw Error(ErrorKind::invalid_argument,
                fmt::format("QWENCH_ACTIVATION_BITS is \"{}\"; expected 8 or 16", text));
  set_activation_bits(text == "8" ? 8 : 16);
}

}  // namespace qwench
#endif
