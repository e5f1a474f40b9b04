#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/tensor_view.h"
#include "kernels/quantize.h"
#include "kernels/unpack.h"

namespace qwench::test {

inline std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(generator);
  return values;
}

/// A tensor with the memory it views.
struct Tensor {
  Tensor(DType dtype, std::vector<int64_t> shape, const std::vector<float>& values) {
    bytes.resize(bytes_of(dtype, values.size()));
    if (is_quantized(dtype)) {
      quantize(dtype, values.data(), static_cast<int64_t>(values.size()), bytes.data());
    } else {
      pack(dtype, values.data(), static_cast<int64_t>(values.size()), bytes.data());
    }
    view = {"test.weight", dtype, std::move(shape), bytes};
  }
  Tensor(DType dtype, int64_t rows, int64_t cols, uint32_t seed)
      : Tensor(dtype, {rows, cols}, random_floats(static_cast<size_t>(rows * cols), seed)) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  /// What the stored bytes mean.
  std::vector<float> values() const {
    std::vector<float> all(static_cast<size_t>(view.count()));
    unpack_reference(view.dtype, bytes.data(), 0, view.count(), all.data());
    return all;
  }

  std::vector<std::byte> bytes;
  TensorView view;
};

}  // namespace qwench::test
