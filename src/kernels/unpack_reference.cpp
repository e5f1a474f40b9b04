#include <array>

#include "kernels/half.h"
#include "kernels/unpack.h"

// Block layouts: ggml-common.h of https://github.com/ggml-org/ggml. A block of 32 nibbles holds element i in
// the low half of byte i and element i + 16 in the high half. All products here are exact in f32: a scale has
// 11 bits (f16), a scale's scale at most 7, a quantized value at most 6.

namespace qwench {
namespace {

const uint8_t* bytes(const std::byte* p) { return reinterpret_cast<const uint8_t*>(p); }
float half_at(const uint8_t* p) { return f16_to_f32(load_unaligned<uint16_t>(p)); }
int nibble(const uint8_t* qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

constexpr std::array<int8_t, 16> kIq4Values{-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

void block_q8_0(const uint8_t* b, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(static_cast<int8_t>(b[2 + i])) * half_at(b);
}

void block_q4_0(const uint8_t* b, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(nibble(b + 2, i) - 8) * half_at(b);
}

void block_q4_1(const uint8_t* b, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(nibble(b + 4, i)) * half_at(b) + half_at(b + 2);
}

void block_q5_0(const uint8_t* b, float* y) {
  const auto high = load_unaligned<uint32_t>(b + 2);
  for (int i = 0; i < 32; ++i) {
    const int q = nibble(b + 6, i) | static_cast<int>((high >> i & 1U) << 4);
    y[i] = static_cast<float>(q - 16) * half_at(b);
  }
}

void block_q5_1(const uint8_t* b, float* y) {
  const auto high = load_unaligned<uint32_t>(b + 4);
  for (int i = 0; i < 32; ++i) {
    const int q = nibble(b + 8, i) | static_cast<int>((high >> i & 1U) << 4);
    y[i] = static_cast<float>(q) * half_at(b) + half_at(b + 2);
  }
}

// scales 16 x (4 bits scale, 4 bits minimum) | quants 64 | d | dmin
void block_q2_k(const uint8_t* b, float* y) {
  const float d = half_at(b + 80);
  const float dmin = half_at(b + 82);
  for (int i = 0; i < 256; ++i) {
    const uint8_t scale = b[i / 16];
    const int q = b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    y[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) - dmin * static_cast<float>(scale >> 4);
  }
}

// high bits 32 | quants 64 | scales 12 | d
void block_q3_k(const uint8_t* b, float* y) {
  const float d = half_at(b + 108);
  const uint8_t* scales = b + 96;
  for (int i = 0; i < 256; ++i) {
    const int s = i / 16;
    const int low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
    const int scale = (low | (scales[8 + s % 4] >> (s / 4 * 2) & 3) << 4) - 32;
    const int q = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int high = b[i % 32] >> (i / 32) & 1;
    y[i] = d * static_cast<float>(scale) * static_cast<float>(q - (high != 0 ? 0 : 4));
  }
}

struct ScaleMin {
  int scale;
  int min;
};

// 8 scales and 8 minima of 6 bits in 12 bytes (q4_k, q5_k).
ScaleMin scale_min(const uint8_t* s, int i) {
  if (i < 4) return {s[i] & 63, s[i + 4] & 63};
  return {(s[i + 4] & 15) | (s[i - 4] >> 6) << 4, (s[i + 4] >> 4) | (s[i] >> 6) << 4};
}

// d | dmin | scales 12 | quants 128
void block_q4_k(const uint8_t* b, float* y) {
  for (int i = 0; i < 256; ++i) {
    const ScaleMin s = scale_min(b + 4, i / 32);
    const int q = b[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    y[i] = half_at(b) * static_cast<float>(s.scale) * static_cast<float>(q) -
           half_at(b + 2) * static_cast<float>(s.min);
  }
}

// d | dmin | scales 12 | high bits 32 | quants 128
void block_q5_k(const uint8_t* b, float* y) {
  for (int i = 0; i < 256; ++i) {
    const ScaleMin s = scale_min(b + 4, i / 32);
    const int low = b[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    const int q = low | (b[16 + i % 32] >> (i / 32) & 1) << 4;
    y[i] = half_at(b) * static_cast<float>(s.scale) * static_cast<float>(q) -
           half_at(b + 2) * static_cast<float>(s.min);
  }
}

// low bits 128 | high bits 64 | scales 16 | d
void block_q6_k(const uint8_t* b, float* y) {
  const float d = half_at(b + 208);
  for (int i = 0; i < 256; ++i) {
    const int low = b[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int high = b[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const auto scale = static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
    y[i] = d * scale * static_cast<float>((low | high << 4) - 32);
  }
}

void block_iq4_nl(const uint8_t* b, float* y) {
  for (int i = 0; i < 32; ++i) {
    y[i] = half_at(b) * static_cast<float>(kIq4Values[static_cast<size_t>(nibble(b + 2, i))]);
  }
}

using BlockFunction = void (*)(const uint8_t*, float*);

BlockFunction block_function(DType dtype) {
  switch (dtype) {
    case DType::q8_0:
      return block_q8_0;
    case DType::q4_0:
      return block_q4_0;
    case DType::q4_1:
      return block_q4_1;
    case DType::q5_0:
      return block_q5_0;
    case DType::q5_1:
      return block_q5_1;
    case DType::q2_k:
      return block_q2_k;
    case DType::q3_k:
      return block_q3_k;
    case DType::q4_k:
      return block_q4_k;
    case DType::q5_k:
      return block_q5_k;
    case DType::q6_k:
      return block_q6_k;
    case DType::iq4_nl:
      return block_iq4_nl;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      break;
  }
  return nullptr;
}

}  // namespace

void unpack_reference(DType dtype, const std::byte* row, int64_t begin, int64_t n, float* dst) {
  const DTypeTraits& t = traits(dtype);
  const uint8_t* src = bytes(row) + begin / t.block_size * t.block_bytes;
  if (const BlockFunction block = block_function(dtype)) {
    for (int64_t i = 0; i < n; i += t.block_size, src += t.block_bytes) block(src, dst + i);
    return;
  }
  for (int64_t i = 0; i < n; ++i, src += t.block_bytes) {
    if (dtype == DType::f32) dst[i] = load_unaligned<float>(src);
    if (dtype == DType::f16) dst[i] = f16_to_f32(load_unaligned<uint16_t>(src));
    if (dtype == DType::bf16) dst[i] = bf16_to_f32(load_unaligned<uint16_t>(src));
  }
}

}  // namespace qwench
