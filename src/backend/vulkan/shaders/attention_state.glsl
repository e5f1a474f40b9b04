// Online softmax (Milakov & Gimelshein 2018, arXiv:1805.02867) over parts of kPart positions, counted from
// position 0, whose results are merged in order: the same bits whether one workgroup computes all parts or
// each has its own (flash-decoding).
const uint kPart = 512;
const float kNone = -3.0e38;  // the maximum of nothing

void merge(inout float largest, inout float sum, float part_largest, float part_sum, out float keep, out float take) {
  const float both = max(largest, part_largest);
  keep = exp(largest - both);
  take = exp(part_largest - both);
  precise const float added = part_sum * take;
  precise const float merged = fma(sum, keep, added);
  sum = merged;
  largest = both;
}

float merged_value(float value, float keep, float part_value, float take) {
  precise const float added = part_value * take;
  precise const float merged = fma(value, keep, added);
  return merged;
}
