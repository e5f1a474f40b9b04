#include "kernels/kv_cells.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "isas.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using test::for_each_isa;

constexpr int kHeadDim = 96;

struct Block {
  explicit Block(DType cell) : bytes(bytes_of(cell, kHeadDim * kKvBlock)) {}
  std::vector<std::byte> bytes;
};

TEST(KvCells, KeysAndValuesComeBackAsTheTypeRoundsThem) {
  const std::vector<float> x = test::random_floats(kHeadDim * kKvBlock, 1);
  for (const DType cell : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    SCOPED_TRACE(name(cell));
    for_each_isa([&](const std::string&) {
      Block keys(cell);
      Block values(cell);
      for (int slot = 0; slot < kKvBlock; ++slot) {
        store_key(cell, x.data() + slot * kHeadDim, kHeadDim, slot, keys.bytes.data());
        store_value(cell, x.data() + slot * kHeadDim, kHeadDim, slot, values.bytes.data());
      }
      std::vector<float> expected(x.size());
      unpack_reference(cell, values.bytes.data(), 0, static_cast<int64_t>(x.size()), expected.data());
      std::vector<float> across(x.size());
      unpack_keys(cell, keys.bytes.data(), kHeadDim, across.data());
      std::vector<float> rows(kKvBlock * (kHeadDim + 16), -1.0F);
      unpack_values(cell, values.bytes.data(), kHeadDim, kKvBlock, kHeadDim + 16, rows.data());
      for (size_t slot = 0; slot < kKvBlock; ++slot) {
        float largest = 0;
        for (size_t c = 0; c < kHeadDim; ++c) largest = std::max(largest, std::fabs(x[slot * kHeadDim + c]));
        for (size_t c = 0; c < kHeadDim; ++c) {
          const float value = expected[slot * kHeadDim + c];
          ASSERT_EQ(across[c * kKvBlock + slot], value) << "key " << slot << ", element " << c;
          ASSERT_EQ(rows[slot * (kHeadDim + 16) + c], value) << "value " << slot << ", element " << c;
          const float unit = cell == DType::q8_0  ? largest / 127
                             : cell == DType::f32 ? 0.0F
                             : cell == DType::f16 ? std::fabs(value) / 1024
                                                  : std::fabs(value) / 128;
          ASSERT_NEAR(value, x[slot * kHeadDim + c], unit * 0.51F + 1e-7F * (unit > 0 ? 1.0F : 0.0F));
        }
      }
    });
  }
}

TEST(KvCells, Q8OfZerosIsZeroAndOfWhatIsNotFiniteIsNotFinite) {
  for_each_isa([&](const std::string&) {
    for (const float bad :
         {0.0F, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(kHeadDim, 0.0F);
      x[40] = bad;
      Block block(DType::q8_0);
      store_value(DType::q8_0, x.data(), kHeadDim, 0, block.bytes.data());
      std::vector<float> found(kHeadDim);
      unpack_values(DType::q8_0, block.bytes.data(), kHeadDim, 1, kHeadDim, found.data());
      EXPECT_EQ(found[0], 0.0F);
      EXPECT_EQ(std::isfinite(found[40]), std::isfinite(bad)) << bad;
    }
  });
}

TEST(KvCells, TypesThatAreNotSupportedAreRefusedWithWhatToDo) {
  EXPECT_NO_THROW(check_kv_cells(DType::q8_0, 64));
  EXPECT_NO_THROW(check_kv_cells(DType::f16, 24));
  const auto sentence = [](DType cell, int head_dim) -> std::string {
    try {
      check_kv_cells(cell, head_dim);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(sentence(DType::q8_0, 80).find("head_dim 80"), std::string::npos) << sentence(DType::q8_0, 80);
  EXPECT_NE(sentence(DType::q4_0, 64).find("choose f16, f32, bf16 or q8_0"), std::string::npos);
}

}  // namespace
}  // namespace qwench
