// Cells of the KV cache. In a block of 16 positions keys lie across, [head_dim, 16], values as rows, [16,
// head_dim]; f16 cells in pairs of elements of a position.
#ifdef CELL_F16
const uint kPerWord = 2;
#else
const uint kPerWord = 1;
#endif
const uint kBlockSize = 16;

#ifdef CELL_F16
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

uint key_word(uint block, uint kv_heads, uint head, uint head_dim, uint word, uint slot) {
  return ((block * kv_heads + head) * (head_dim / kPerWord) + word) * kBlockSize + slot;
}
uint value_word(uint block, uint kv_heads, uint head, uint head_dim, uint word, uint slot) {
  return ((block * kv_heads + head) * kBlockSize + slot) * (head_dim / kPerWord) + word;
}
