// Cells of the KV cache. In a block of 16 positions keys lie across, [head_dim, 16], values as rows, [16,
// head_dim]; f16 cells in pairs of elements of a position.
#ifdef CELL_F16
const uint kPerWord = 2;
#else
const uint kPerWord = 1;
#endif
const uint kBlockSize = 16;

uint key_word(uint block, uint kv_heads, uint head, uint head_dim, uint word, uint slot) {
  return ((block * kv_heads + head) * (head_dim / kPerWord) + word) * kBlockSize + slot;
}
uint value_word(uint block, uint kv_heads, uint head, uint head_dim, uint word, uint slot) {
  return ((block * kv_heads + head) * kBlockSize + slot) * (head_dim / kPerWord) + word;
}
