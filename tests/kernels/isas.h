#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "kernels/unpack.h"
#include "qwench/dtype.h"

namespace qwench::test {

/// Calls f(name) once for each instruction set of this CPU, with the kernels set to it.
template <typename F>
void for_each_isa(F f) {
  const std::vector<std::string> isas = available_isas();
  ASSERT_GE(isas.size(), 1U);
  for (const std::string& isa : isas) {
    SCOPED_TRACE("instruction set " + isa);
    set_isa(isa);
    ASSERT_EQ(current_isa(), isa);
    f(isa);
  }
  set_isa("");
}

inline std::vector<float> random_floats(size_t count, uint32_t seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& v : values) v = normal(generator);
  return values;
}

/// Where a block of a quantized type holds its scales in f16.
inline std::vector<size_t> half_scales(DType dtype) {
  switch (dtype) {
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
      return {0, 2};
    case DType::q2_k:
      return {80, 82};
    case DType::q3_k:
      return {108};
    case DType::q6_k:
      return {208};
    default:
      return {0};
  }
}

/// Random bytes that make `count` numbers of this type, with finite values of a moderate size.
inline std::vector<std::byte> random_weights(DType dtype, int64_t count, uint32_t seed) {
  const auto bytes = static_cast<size_t>(bytes_of(dtype, static_cast<uint64_t>(count)));
  std::vector<std::byte> out(bytes);
  if (!is_quantized(dtype)) {
    pack(dtype, random_floats(static_cast<size_t>(count), seed, 0.5F).data(), count, out.data());
    return out;
  }
  std::mt19937 generator(seed);
  for (std::byte& b : out) b = static_cast<std::byte>(generator() & 0xFFU);
  const std::vector<size_t> scales = half_scales(dtype);
  const auto width = static_cast<size_t>(traits(dtype).block_bytes);
  for (size_t block = 0; block < bytes; block += width) {
    for (const size_t offset : scales) {
      const float scale = static_cast<float>(static_cast<int>(generator() % 200) - 100) * 1e-4F;
      pack(DType::f16, &scale, 1, out.data() + block + offset);
    }
  }
  return out;
}

inline std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

}  // namespace qwench::test
