// Matrices as weight_layout.h lays them out: rows in panels of 32, a row cut into units of 16 bytes, and the
// same unit of the 32 rows side by side, so that neighbouring invocations read neighbouring bytes.
// `units` are a row's units; `quants` those before its scales.
layout(set = 0, binding = 0) readonly buffer Weights { uvec4 weight_units[]; };

uvec4 weight_unit(uint row, uint units, uint unit) {
  return weight_units[((row >> 5) * units + unit) * 32u + (row & 31u)];
}

vec4 signed_bytes(uint word) {
  return vec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8), bitfieldExtract(int(word), 16, 8),
              bitfieldExtract(int(word), 24, 8));
}

vec4 nibbles(uint word, uint shift) {
  const uint four = (word >> shift) & 0x0f0f0f0fu;
  return vec4(four & 255u, (four >> 8) & 255u, (four >> 16) & 255u, four >> 24);
}

float half_of(uvec4 unit, uint index) {
  const vec2 pair = unpackHalf2x16(unit[index >> 1]);
  return (index & 1u) == 0u ? pair.x : pair.y;
}

// Elements k ... k + 7 of a row; k is a multiple of 8.
void weight8(uint row, uint units, uint quants, uint k, out vec4 low, out vec4 high) {
#if defined(WEIGHT_F32)
  low = uintBitsToFloat(weight_unit(row, units, k >> 2));
  high = uintBitsToFloat(weight_unit(row, units, (k >> 2) + 1u));
#elif defined(WEIGHT_F16)
  const uvec4 unit = weight_unit(row, units, k >> 3);
  low = vec4(unpackHalf2x16(unit.x), unpackHalf2x16(unit.y));
  high = vec4(unpackHalf2x16(unit.z), unpackHalf2x16(unit.w));
#elif defined(WEIGHT_Q8_0)
  const uvec4 unit = weight_unit(row, units, k >> 4);
  const uvec2 words = (k & 8u) == 0u ? unit.xy : unit.zw;
  const uint block = k >> 5;
  const float d = half_of(weight_unit(row, units, quants + (block >> 3)), block & 7u);
  low = signed_bytes(words.x) * d;
  high = signed_bytes(words.y) * d;
#elif defined(WEIGHT_Q4_0)
  const uint block = k >> 5;
  const uvec4 unit = weight_unit(row, units, block);
  const uvec2 words = (k & 8u) == 0u ? unit.xy : unit.zw;
  const uint shift = (k & 16u) >> 2;
  const float d = half_of(weight_unit(row, units, quants + (block >> 3)), block & 7u);
  low = (nibbles(words.x, shift) - 8.0) * d;
  high = (nibbles(words.y, shift) - 8.0) * d;
#elif defined(WEIGHT_Q4_1)
  const uint block = k >> 5;
  const uvec4 unit = weight_unit(row, units, block);
  const uvec2 words = (k & 8u) == 0u ? unit.xy : unit.zw;
  const uint shift = (k & 16u) >> 2;
  const vec2 scale = unpackHalf2x16(weight_unit(row, units, quants + (block >> 2))[block & 3u]);
  precise vec4 first = nibbles(words.x, shift) * scale.x;
  precise vec4 second = nibbles(words.y, shift) * scale.x;
  first += scale.y;
  second += scale.y;
  low = first;
  high = second;
#elif defined(WEIGHT_Q4_K)
  // ggml's block_q4_K as it is: 9 units of 256 elements, the first with d, dmin and 8 6-bit scales and mins.
  const uint super = (k >> 8) * 9u;
  const uint e = k & 255u;
  const uvec4 head = weight_unit(row, units, super);
  const uint j = e >> 5;
  const uint lane = (j & 3u) * 8u;
  const uint scales = (head.y >> lane) & 255u;   // bytes 0-3
  const uint mins = (head.z >> lane) & 255u;     // bytes 4-7
  const uint rest = (head.w >> lane) & 255u;     // bytes 8-11
  const uint scale = j < 4u ? (scales & 63u) : ((rest & 15u) | ((scales >> 6) << 4));
  const uint least = j < 4u ? (mins & 63u) : ((rest >> 4) | ((mins >> 6) << 4));
  const vec2 d = unpackHalf2x16(head.x);
  const uvec4 unit = weight_unit(row, units, super + 1u + (e >> 6) * 2u + ((e >> 4) & 1u));
  const uvec2 words = (e & 8u) == 0u ? unit.xy : unit.zw;
  const uint shift = (e & 32u) >> 3;
  precise float factor = d.x * float(scale);
  precise float offset = d.y * float(least);
  precise vec4 first = nibbles(words.x, shift) * factor;
  precise vec4 second = nibbles(words.y, shift) * factor;
  first -= offset;
  second -= offset;
  low = first;
  high = second;
#elif defined(WEIGHT_Q6_K)
  // Of ggml's block_q6_K 13 units of 256 elements: 128 bytes with the low 4 bits, 64 with the high 2, 16 8-bit
  // scales; its d stands behind all blocks of the row.
  const uint index = k >> 8;
  const uint super = index * 13u;
  const uint e = k & 255u;
  const uint half_block = e >> 7;
  const uint group = (e >> 5) & 3u;
  const uint l = e & 31u;
  const uint low_byte = half_block * 64u + (group & 1u) * 32u + l;
  const uint high_byte = half_block * 32u + l;
  const uvec4 low_unit = weight_unit(row, units, super + (low_byte >> 4));
  const uvec4 high_unit = weight_unit(row, units, super + 8u + (high_byte >> 4));
  const uvec2 low_words = (low_byte & 8u) == 0u ? low_unit.xy : low_unit.zw;
  const uvec2 high_words = (high_byte & 8u) == 0u ? high_unit.xy : high_unit.zw;
  const uint scale_byte = half_block * 8u + group * 2u + (l >> 4);
  const uint scale_word = weight_unit(row, units, super + 12u)[scale_byte >> 2];
  const float scale = float(bitfieldExtract(int(scale_word), int((scale_byte & 3u) * 8u), 8));
  const float d = half_of(weight_unit(row, units, quants + (index >> 3)), index & 7u);
  precise float factor = d * scale;
  const uint low_shift = (group & 2u) << 1;
  const uvec2 bits = ((low_words >> low_shift) & 0x0f0f0f0fu) | (((high_words >> (group * 2u)) & 0x03030303u) << 4);
  low = (signed_bytes(bits.x) - 32.0) * factor;
  high = (signed_bytes(bits.y) - 32.0) * factor;
#else
#error "no type of weights is defined"
#endif
}
