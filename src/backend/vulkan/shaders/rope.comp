#version 450
#extension GL_GOOGLE_include_directive : require
// One head of one row: RMS norm (QK-norm), rotation (Su et al. 2021, arXiv:2104.09864), and for keys and values
// the store into the cache. Heads are counted through those of q, k and v.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kThreads = 64;  // a power of two

#include "step.glsl"
#include "cells.glsl"

layout(set = 0, binding = 0) buffer Queries { float q[]; };
layout(set = 0, binding = 1) buffer Keys { float k[]; };
layout(set = 0, binding = 2) readonly buffer Values { float v[]; };
layout(set = 0, binding = 3) readonly buffer QueryNorm { float q_norm[]; };
layout(set = 0, binding = 4) readonly buffer KeyNorm { float k_norm[]; };
layout(set = 0, binding = 5) writeonly buffer KeyCells { uint key_cells[]; };
layout(set = 0, binding = 6) writeonly buffer ValueCells { uint value_cells[]; };

layout(push_constant) uniform Arguments {
  uint q_heads;  // 0 where there are no queries
  uint k_heads;
  uint v_heads;  // 0, or k_heads: keys and values are stored
  uint head_dim;
  uint q_stride;
  uint k_stride;
  uint v_stride;
  uint flags;
  float eps;
};
const uint kNormsQueries = 1;
const uint kNormsKeys = 2;
const uint kRotatesKeys = 4;
const uint kInterleaved = 8;
const uint kLargestHead = 512;

shared float head[kLargestHead];
shared float sums[kThreads];

#ifdef CELL_Q8_0
// The largest magnitude / 127; NaN where an element is not finite.
float scale_of(uint first) {
  float largest = 0.0;
  bool bad = false;
  for (uint i = first; i < first + kPerScale; ++i) {
    bad = bad || (floatBitsToUint(head[i]) & 0x7f800000u) == 0x7f800000u;
    largest = max(largest, abs(head[i]));
  }
  return bad ? uintBitsToFloat(0x7fc00000u) : largest / 127.0;
}
#endif

uint cells_of(uint word) {
#if defined(CELL_F32)
  return floatBitsToUint(head[word]);
#elif defined(CELL_F16)
  return half_bits(head[2u * word]) | half_bits(head[2u * word + 1u]) << 16;
#elif defined(CELL_BF16)
  return brain_bits(head[2u * word]) | brain_bits(head[2u * word + 1u]) << 16;
#else
  const float scale = scale_of(kPerWord * word / kPerScale * kPerScale);
  const float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
  uint bits = 0u;
  for (uint i = 0u; i < kPerWord; ++i) {
    const float whole = roundEven(clamp(head[kPerWord * word + i] * inverse, -127.0, 127.0));
    bits |= (uint(int(whole)) & 0xffu) << (8u * i);
  }
  return bits;
#endif
}

void main() {
  const uint row = gl_WorkGroupID.x;
  const uint thread = gl_LocalInvocationID.x;
  const uint index = gl_WorkGroupID.y;
  const bool query = index < q_heads;
  const bool key = !query && index < q_heads + k_heads;
  const uint own = query ? index : key ? index - q_heads : index - q_heads - k_heads;
  const uint begin = row * (query ? q_stride : key ? k_stride : v_stride) + own * head_dim;
  const bool norms = query ? (flags & kNormsQueries) != 0u : key && (flags & kNormsKeys) != 0u;
  const bool rotates = query || (key && (flags & kRotatesKeys) != 0u);
  for (uint i = thread; i < head_dim; i += kThreads) head[i] = query ? q[begin + i] : key ? k[begin + i] : v[begin + i];
  if (norms) {
    precise float squares = 0.0;
    for (uint i = thread; i < head_dim; i += kThreads) squares = fma(head[i], head[i], squares);
    sums[thread] = squares;
    for (uint half_size = kThreads / 2u; half_size > 0u; half_size /= 2u) {
      barrier();
      if (thread < half_size) sums[thread] += sums[thread + half_size];
    }
    barrier();
    precise const float scale = 1.0 / sqrt(sums[0] / float(head_dim) + eps);
    for (uint i = thread; i < head_dim; i += kThreads) {
      precise const float scaled = head[i] * scale;
      head[i] = scaled * (query ? q_norm[i] : k_norm[i]);
    }
  }
  barrier();
  if (rotates) {
    const uint pairs = head_dim / 2u;
    const bool interleaved = (flags & kInterleaved) != 0u;
    for (uint i = thread; i < pairs; i += kThreads) {
      const uint first = interleaved ? 2u * i : i;
      const uint second = interleaved ? 2u * i + 1u : i + pairs;
      const float cosine = step_number(kCos, row * pairs + i);
      const float sine = step_number(kSin, row * pairs + i);
      const float a = head[first];
      const float b = head[second];
      precise const float a_sine = a * sine;
      precise const float b_sine = b * sine;
      precise const float rotated = a * cosine - b_sine;
      precise const float turned = b * cosine + a_sine;
      head[first] = rotated;
      head[second] = turned;
    }
    barrier();
    for (uint i = thread; i < head_dim; i += kThreads) {
      if (query) {
        q[begin + i] = head[i];
      } else {
        k[begin + i] = head[i];
      }
    }
  }
  if (query || v_heads == 0u) return;
  const uint position = step_value(kPositions, row);
  const uint block = step_words[step_value(kTables, row) + position / kBlockSize];
  const uint slot = position % kBlockSize;
  for (uint word = thread; word < head_dim / kPerWord; word += kThreads) {
    const uint bits = cells_of(word);
    if (key) {
      key_cells[key_word(block, k_heads, own, head_dim, word, slot)] = bits;
    } else {
      value_cells[value_word(block, k_heads, own, head_dim, word, slot)] = bits;
    }
  }
#ifdef CELL_Q8_0
  for (uint pair = thread; pair < head_dim / (2u * kPerScale); pair += kThreads) {
    const uint first = 2u * kPerScale * pair;
    const uint bits = half_bits(scale_of(first)) | half_bits(scale_of(first + kPerScale)) << 16;
    if (key) {
      key_cells[key_scales(block, k_heads, own, head_dim, pair, slot)] = bits;
    } else {
      value_cells[value_scales(block, k_heads, own, head_dim, pair, slot)] = bits;
    }
  }
#endif
}
