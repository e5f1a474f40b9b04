// Cells of the KV cache. In a block of 16 positions keys lie across, [head_dim, 16], values as rows, [16,
// head_dim], in words of one, two (f16, bf16) or four (q8_0) elements of a position. With q8_0 cells every 32
// elements share a scale, and the scales come after a head's elements, in words of two: head_dim is a multiple
// of 64.
#if defined(CELL_F32)
const uint kPerWord = 1;
#elif defined(CELL_Q8_0)
const uint kPerWord = 4;
#else
const uint kPerWord = 2;
#endif
const uint kBlockSize = 16;
const uint kPerScale = 32;

#if defined(CELL_F16) || defined(CELL_Q8_0)
// To nearest, ties to even, as on the CPU: how packHalf2x16 rounds is the driver's choice.
uint half_bits(float number) {
  const uint bits = floatBitsToUint(number);
  const uint sign = (bits >> 16) & 0x8000u;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  // Below the smallest normal number, in steps of 2^-24.
  if (magnitude < 0x38800000u) return sign | uint(roundEven(uintBitsToFloat(magnitude) * 16777216.0));
  return sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13);
}
#endif
#ifdef CELL_BF16
uint brain_bits(float number) {
  const uint bits = floatBitsToUint(number);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
#endif

// The number of `element` in its word; `scale` is of q8_0 cells.
float cell_number(uint bits, uint element, float scale) {
#if defined(CELL_F32)
  return uintBitsToFloat(bits);
#elif defined(CELL_F16)
  const vec2 pair = unpackHalf2x16(bits);
  return (element & 1u) == 0u ? pair.x : pair.y;
#elif defined(CELL_BF16)
  return uintBitsToFloat((element & 1u) == 0u ? bits << 16 : bits & 0xffff0000u);
#else
  return float(bitfieldExtract(int(bits), int(8u * (element & 3u)), 8)) * scale;
#endif
}

uint words_of_head(uint head_dim) {
#ifdef CELL_Q8_0
  return kBlockSize * (head_dim / kPerWord + head_dim / (2u * kPerScale));
#else
  return kBlockSize * (head_dim / kPerWord);
#endif
}
uint key_word(uint block, uint kv_heads, uint head, uint head_dim, uint word, uint slot) {
  return (block * kv_heads + head) * words_of_head(head_dim) + word * kBlockSize + slot;
}
uint value_word(uint block, uint kv_heads, uint head, uint head_dim, uint word, uint slot) {
  return (block * kv_heads + head) * words_of_head(head_dim) + slot * (head_dim / kPerWord) + word;
}
#ifdef CELL_Q8_0
// Where the scales of elements from 64 `pair` on lie.
uint key_scales(uint block, uint kv_heads, uint head, uint head_dim, uint pair, uint slot) {
  return key_word(block, kv_heads, head, head_dim, head_dim / kPerWord + pair, slot);
}
uint value_scales(uint block, uint kv_heads, uint head, uint head_dim, uint pair, uint slot) {
  return (block * kv_heads + head) * words_of_head(head_dim) + kBlockSize * (head_dim / kPerWord) +
         slot * (head_dim / (2u * kPerScale)) + pair;
}
float scale_in(uint scales, uint element) {
  const vec2 pair = unpackHalf2x16(scales);
  return (element / kPerScale & 1u) == 0u ? pair.x : pair.y;
}
#endif
