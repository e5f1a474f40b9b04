#include "model/kept_type.h"

namespace qwench {
namespace {

bool whole_blocks(const TensorView& tensor, DType dtype) {
  return tensor.cols() % traits(dtype).block_size == 0;
}

double bytes_per_number(DType dtype) {
  return static_cast<double>(traits(dtype).block_bytes) / traits(dtype).block_size;
}

}  // namespace

DType kept_type(const TensorView& tensor, std::optional<DType> wanted) {
  if (tensor.rows() < 2) return DType::f32;
  if (!wanted) return tensor.dtype;
  if (!is_quantized(*wanted)) return *wanted;
  const bool reaches_all = tensor.name == "model.embed_tokens.weight" || tensor.name == "lm_head.weight";
  DType kept = reaches_all || !whole_blocks(tensor, *wanted) ? DType::q8_0 : *wanted;
  if (!whole_blocks(tensor, kept)) kept = tensor.dtype;
  return bytes_per_number(tensor.dtype) <= bytes_per_number(kept) ? tensor.dtype : kept;
}

}  // namespace qwench
