#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qwench/dtype.h"

namespace qwench {

/// A tensor as it lies in a mapped file. Row-major, shape outermost first as in Hugging Face files:
/// a Linear's weight is [out_features, in_features]. The bytes live as long as the Checkpoint.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  bool mapped = false;  // the bytes are a file's: release (mapped_file.h) may give their memory back

  int64_t rows() const { return shape.size() < 2 ? 1 : shape[0]; }
  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
};

}  // namespace qwench
