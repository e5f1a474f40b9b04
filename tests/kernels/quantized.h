#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "isas.h"
#include "kernels/byte_rows.h"
#include "kernels/quantized_rows.h"
#include "kernels/unpack.h"

namespace qwench::test {

/// Rows of x, `stride` floats apart, quantized by the instruction set in use. `cols` that are no whole blocks
/// are filled up with zeros.
struct Quantized {
  Quantized(const std::vector<float>& x, int64_t row_count, int64_t col_count, int64_t x_stride)
      : count(row_count), stride(x_stride) {
    memory.resize(static_cast<size_t>(QuantizedRows::bytes(row_count, col_count)) / sizeof(double) + 1);
    rows = QuantizedRows::in(reinterpret_cast<std::byte*>(memory.data()), row_count, col_count);
    std::vector<float> row(static_cast<size_t>(rows.stride));
    for (int64_t r = 0; r < row_count; ++r) {
      std::copy_n(x.begin() + r * x_stride, col_count, row.begin());
      quantize_row(row.data(), rows.stride, r, rows);
    }
  }

  /// The numbers that the integers stand for, laid out as x was.
  std::vector<float> unpacked() const {
    std::vector<float> x(static_cast<size_t>(count * stride));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < std::min(stride, rows.stride); ++k) {
        const int64_t at = r * rows.stride + k;
        x[static_cast<size_t>(r * stride + k)] =
            static_cast<float>(rows.values[at]) * rows.scales[at / QuantizedRows::kBlock];
      }
    }
    return x;
  }

  int64_t count;
  int64_t stride;
  std::vector<double> memory;
  QuantizedRows rows;
};

/// The same as bytes.
struct Bytes {
  Bytes(const std::vector<float>& x, int64_t row_count, int64_t col_count, int64_t x_stride)
      : count(row_count), stride(x_stride) {
    memory.resize(static_cast<size_t>(ByteRows::bytes(row_count, col_count)) / sizeof(double) + 1);
    rows = ByteRows::in(reinterpret_cast<std::byte*>(memory.data()), row_count, col_count);
    std::vector<float> row(static_cast<size_t>(rows.stride));
    for (int64_t r = 0; r < row_count; ++r) {
      std::copy_n(x.begin() + r * x_stride, col_count, row.begin());
      quantize_row_to_bytes(row.data(), rows.stride, r, rows);
    }
  }

  /// Number k of row r.
  int value(int64_t r, int64_t k) const {
    const auto at = std::find(std::begin(ByteRows::kOrder), std::end(ByteRows::kOrder), k % 8);
    return rows.values[r * rows.stride + k / 8 * 8 + (at - std::begin(ByteRows::kOrder))];
  }

  std::vector<float> unpacked() const {
    std::vector<float> x(static_cast<size_t>(count * stride));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < std::min(stride, rows.stride); ++k) {
        x[static_cast<size_t>(r * stride + k)] =
            static_cast<float>(value(r, k)) * rows.scales[(r * rows.stride + k) / ByteRows::kBlock];
      }
    }
    return x;
  }

  int64_t count;
  int64_t stride;
  std::vector<double> memory;
  ByteRows rows;
};

inline std::vector<float> rounded_to_bf16(std::vector<float> values) {
  std::vector<std::byte> packed(values.size() * 2);
  pack(DType::bf16, values.data(), static_cast<int64_t>(values.size()), packed.data());
  unpack_reference(DType::bf16, packed.data(), 0, static_cast<int64_t>(values.size()), values.data());
  return values;
}

/// for_each_isa(f), and again with activations of 8 bits where weights of this type take them.
template <typename F>
void for_each_way(DType dtype, F f) {
  for_each_isa(f);
  set_activation_bits(8);
  for_each_isa([&](const std::string& isa) {
    if (!multiplied_by_bytes(dtype) && !multiplied_by_bf16(dtype)) return;
    SCOPED_TRACE("activations of 8 bits");
    f(isa);
  });
  set_activation_bits(16);
}

/// Sets every byte of quantized weights to `value`, and every scale in f16 to 0.01.
inline void fill_quants(DType dtype, std::byte value, std::vector<std::byte>& weights) {
  const float scale = 0.01F;
  const auto width = static_cast<size_t>(traits(dtype).block_bytes);
  for (std::byte& b : weights) b = value;
  for (size_t block = 0; block < weights.size(); block += width) {
    for (const size_t offset : half_scales(dtype))
      pack(DType::f16, &scale, 1, weights.data() + block + offset);
  }
}

}  // namespace qwench::test
