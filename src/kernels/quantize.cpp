#include "kernels/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/half.h"

namespace qwench {
namespace {

constexpr int kPart = 32;
constexpr float kLargestHalf = 65504.0F;

uint16_t scale_bits(float scale) { return f32_to_f16(std::clamp(scale, -kLargestHalf, kLargestHalf)); }

void store_half(uint16_t half, uint8_t* dst) { std::memcpy(dst, &half, sizeof(half)); }

// round(x / scale) within [low, high]; 0 where the scale is 0.
int quant(float x, float inverse, int low, int high) {
  return static_cast<int>(
      std::lrintf(std::clamp(x * inverse, static_cast<float>(low), static_cast<float>(high))));
}

float inverse_of(float scale) { return scale == 0 ? 0.0F : 1.0F / scale; }

bool all_finite(const float* x, int64_t n) {
  float nothing = 0;
  for (int64_t i = 0; i < n; ++i) nothing += x[i] * 0.0F;
  return nothing == 0;
}

// The types' scales in f16 come first.
void not_a_number(DType dtype, uint8_t* block) {
  std::memset(block, 0, static_cast<size_t>(traits(dtype).block_bytes));
  store_half(f32_to_f16(NAN), block);
}

void quantize_q8_0(const float* x, uint8_t* block) {
  float most = 0;
  for (int i = 0; i < kPart; ++i) most = std::max(most, std::fabs(x[i]));
  const uint16_t half = scale_bits(most / 127.0F);
  const float inverse = inverse_of(f16_to_f32(half));
  store_half(half, block);
  for (int i = 0; i < kPart; ++i)
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(quant(x[i], inverse, -127, 127)));
}

void quantize_q4_0(const float* x, uint8_t* block) {
  const float* largest =
      std::max_element(x, x + kPart, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const uint16_t half = scale_bits(*largest / -8.0F);
  const float inverse = inverse_of(f16_to_f32(half));
  store_half(half, block);
  for (int i = 0; i < kPart / 2; ++i) {
    const int low = quant(x[i], inverse, -8, 7) + 8;
    const int high = quant(x[i + kPart / 2], inverse, -8, 7) + 8;
    block[2 + i] = static_cast<uint8_t>(low | high << 4);
  }
}

// 32 numbers as quant * scale - min, quants 0 to 15.
struct Range {
  float scale;
  float min;  // >= 0
};

double squared_error(const float* x, const Range& range) {
  const float inverse = inverse_of(range.scale);
  double error = 0;
  for (int i = 0; i < kPart; ++i) {
    const float value = static_cast<float>(quant(x[i] + range.min, inverse, 0, 15)) * range.scale - range.min;
    error += double{value - x[i]} * (value - x[i]);
  }
  return error;
}

Range best_range(const float* x) {
  const float low = std::min(0.0F, *std::min_element(x, x + kPart));
  const float high = std::max(0.0F, *std::max_element(x, x + kPart));
  Range best{(high - low) / 15.0F, -low};
  double least = squared_error(x, best);
  for (const float cut_low : {1.0F, 0.9F, 0.8F}) {
    for (const float cut_high : {1.0F, 0.9F, 0.8F}) {
      const Range range{(high * cut_high - low * cut_low) / 15.0F, -low * cut_low};
      const double error = squared_error(x, range);
      if (error < least) {
        least = error;
        best = range;
      }
    }
  }
  return best;
}

// Layout: f16 scale and f16 min of all; 8 scales and 8 minima of 6 bits in 12 bytes; 4 times 32 bytes, each
// of which holds the quants of two parts.
void quantize_q4_k(const float* x, uint8_t* block) {
  constexpr int kParts = 8;
  std::array<Range, kParts> ranges;
  float scale = 0;
  float min = 0;
  for (int p = 0; p < kParts; ++p) {
    ranges[static_cast<size_t>(p)] = best_range(x + p * kPart);
    scale = std::max(scale, ranges[static_cast<size_t>(p)].scale);
    min = std::max(min, ranges[static_cast<size_t>(p)].min);
  }
  const uint16_t scale_half = scale_bits(scale / 63.0F);
  const uint16_t min_half = scale_bits(min / 63.0F);
  const float scale_step = f16_to_f32(scale_half);
  const float min_step = f16_to_f32(min_half);
  std::memset(block, 0, 144);
  store_half(scale_half, block);
  store_half(min_half, block + 2);
  uint8_t* packed = block + 4;
  for (int p = 0; p < kParts; ++p) {
    const Range& range = ranges[static_cast<size_t>(p)];
    const int s = quant(range.scale, inverse_of(scale_step), 0, 63);
    const int m = quant(range.min, inverse_of(min_step), 0, 63);
    if (p < 4) {
      packed[p] = static_cast<uint8_t>(packed[p] | s);
      packed[p + 4] = static_cast<uint8_t>(packed[p + 4] | m);
    } else {
      packed[p + 4] = static_cast<uint8_t>((s & 15) | (m & 15) << 4);
      packed[p - 4] = static_cast<uint8_t>(packed[p - 4] | s >> 4 << 6);
      packed[p] = static_cast<uint8_t>(packed[p] | m >> 4 << 6);
    }
    const float inverse = inverse_of(scale_step * static_cast<float>(s));
    const float offset = min_step * static_cast<float>(m);
    uint8_t* quants = block + 16 + p / 2 * kPart;
    for (int i = 0; i < kPart; ++i) {
      const int q = quant(x[p * kPart + i] + offset, inverse, 0, 15);
      quants[i] = static_cast<uint8_t>(quants[i] | q << p % 2 * 4);
    }
  }
}

}  // namespace

bool can_quantize(DType dtype) noexcept {
  return dtype == DType::q8_0 || dtype == DType::q4_0 || dtype == DType::q4_k;
}

void quantize(DType dtype, const float* src, int64_t n, std::byte* dst) {
  const DTypeTraits& t = traits(dtype);
  auto* block = reinterpret_cast<uint8_t*>(dst);
  for (int64_t i = 0; i < n; i += t.block_size, block += t.block_bytes) {
    if (!all_finite(src + i, t.block_size)) {
      not_a_number(dtype, block);
    } else if (dtype == DType::q8_0) {
      quantize_q8_0(src + i, block);
    } else if (dtype == DType::q4_0) {
      quantize_q4_0(src + i, block);
    } else {
      quantize_q4_k(src + i, block);
    }
  }
}

}  // namespace qwench
