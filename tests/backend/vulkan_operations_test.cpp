// Each operation on a Vulkan device beside the same in plain loops or on the CPU, over odd sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "test_tensor.h"
#include "vulkan_test_device.h"

namespace qwench {
namespace {

using test::random_floats;
using test::Tensor;

std::unique_ptr<Backend> vulkan(ThreadPool& pool, VulkanOptions options = {}) {
  const auto device = test::vulkan_test_device();
  options.index = device->index;
  options.keeps_f32 = true;
  return make_vulkan_backend(options, pool);
}

/// A matrix with these values, which the backend's embedding brings to it.
class Filler {
 public:
  explicit Filler(Backend& backend) : backend_(backend) {}

  std::unique_ptr<Matrix> matrix(int rows, int cols, const std::vector<float>& values) {
    auto matrix = backend_.allocate(rows, cols);
    matrix->rows = rows;
    tensors_.push_back(
        std::make_unique<Tensor>(DType::f32, std::vector<int64_t>{rows + 1, cols}, padded(values, cols)));
    weights_.push_back(backend_.load(tensors_.back()->view, DType::f32));
    tokens_.push_back(std::make_unique<std::vector<TokenId>>());
    for (int r = 0; r < rows; ++r) tokens_.back()->push_back(r);
    batches_.push_back(std::make_unique<Batch>(Batch{*tokens_.back(), {}, {}, {}, {}}));
    backend_.begin(*batches_.back());
    backend_.embed(*weights_.back(), *matrix);
    return matrix;
  }

 private:
  // One row more: a tensor of one row is a vector.
  static std::vector<float> padded(std::vector<float> values, int cols) {
    values.resize(values.size() + static_cast<size_t>(cols), 7.0F);
    return values;
  }

  Backend& backend_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::vector<std::unique_ptr<std::vector<TokenId>>> tokens_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

std::vector<float> values_of(Backend& backend, const Matrix& matrix) {
  std::vector<float> values;
  std::vector<float> row(static_cast<size_t>(matrix.cols));
  for (int r = 0; r < matrix.rows; ++r) {
    backend.read_row(matrix, r, row);
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double distance = std::abs(static_cast<double>(got[i]) - want[i]);
    if (!(distance <= worst)) {
      worst = std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
      at = i;
    }
  }
  EXPECT_LE(worst, tolerance) << "element " << at << " of " << want.size() << ": " << got[at] << ", not "
                              << want[at];
}

/// Compiling shaders takes longer than running them: the tests of a process share them.
Backend& shared_device() {
  static ThreadPool pool(1);
  static const std::unique_ptr<Backend> backend = vulkan(pool);
  return *backend;
}

/// Computes the same on the device and on the CPU.
template <typename F>
void expect_as_cpu(double tolerance, F&& compute) {
  ThreadPool pool(1);
  const auto cpu = make_cpu_backend(pool);
  expect_near(compute(shared_device()), compute(*cpu), tolerance);
}

class LinearOfType : public testing::TestWithParam<DType> {};

TEST_P(LinearOfType, EqualsPlainLoopsForEveryNumberOfRows) {
  QWENCH_NEEDS_VULKAN(device);
  const DType dtype = GetParam();
  ThreadPool pool(2);
  const auto backend = vulkan(pool);
  Filler filler(*backend);
  const std::vector<std::pair<int64_t, int64_t>> shapes =
      dtype == DType::q4_k || dtype == DType::q6_k
          ? std::vector<std::pair<int64_t, int64_t>>{{33, 256}, {97, 768}}
      : is_quantized(dtype)
          ? std::vector<std::pair<int64_t, int64_t>>{{2, 32}, {33, 96}, {97, 544}}
          : std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {5, 33}, {65, 200}, {130, 577}};
  for (const auto& [outputs, columns] : shapes) {
    std::unique_ptr<Tensor> weight;
    if (!can_quantize(dtype) && is_quantized(dtype)) {
      weight = std::make_unique<Tensor>(DType::f32, outputs, columns, 3);
      weight->bytes.assign(bytes_of(dtype, static_cast<uint64_t>(outputs * columns)), std::byte{0});
      for (size_t i = 0; i < weight->bytes.size(); ++i)
        weight->bytes[i] = static_cast<std::byte>(i * 37 % 251);
      const auto block = static_cast<size_t>(traits(dtype).block_bytes);
      for (size_t i = 0; i < weight->bytes.size(); i += block) {
        const std::vector<float> scale{0.01F, -0.07F};
        const std::vector<float> small{0.0003F};
        if (dtype == DType::q4_1) pack(DType::f16, scale.data(), 2, weight->bytes.data() + i);
        if (dtype == DType::q6_k) pack(DType::f16, small.data(), 1, weight->bytes.data() + i + 208);
      }
      weight->view = {"test.weight", dtype, {outputs, columns}, weight->bytes};
    } else {
      weight = std::make_unique<Tensor>(dtype, outputs, columns, 3);
    }
    const Tensor bias(DType::f32, {outputs}, random_floats(static_cast<size_t>(outputs), 4));
    const auto w = backend->load(weight->view, dtype);
    const auto b = backend->load(bias.view, DType::f32);
    ASSERT_EQ(w->dtype, dtype);
    const std::vector<float> values = weight->values();
    for (const int rows : {1, 2, 3, 7, 8, 9, 17, 33, 70}) {
      SCOPED_TRACE(testing::Message()
                   << name(dtype) << " [" << outputs << ", " << columns << "], rows " << rows);
      const std::vector<float> x =
          random_floats(static_cast<size_t>(rows * columns), static_cast<uint32_t>(rows));
      const auto in = filler.matrix(rows, static_cast<int>(columns), x);
      auto plain = backend->allocate(rows, static_cast<int>(outputs));
      auto biased = backend->allocate(rows, static_cast<int>(outputs));
      plain->rows = biased->rows = rows;
      const Linear linears[] = {{w.get(), nullptr}, {w.get(), b.get()}};
      Matrix* const outs[] = {plain.get(), biased.get()};
      backend->linear(*in, linears, outs);
      std::vector<float> want(static_cast<size_t>(rows * outputs));
      std::vector<float> want_biased(want.size());
      for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
        for (size_t n = 0; n < static_cast<size_t>(outputs); ++n) {
          double sum = 0;
          for (size_t k = 0; k < static_cast<size_t>(columns); ++k)
            sum += static_cast<double>(x[r * static_cast<size_t>(columns) + k]) *
                   values[n * static_cast<size_t>(columns) + k];
          want[r * static_cast<size_t>(outputs) + n] = static_cast<float>(sum);
          want_biased[r * static_cast<size_t>(outputs) + n] = static_cast<float>(sum + bias.values()[n]);
        }
      }
      expect_near(values_of(*backend, *plain), want, 2e-4);
      expect_near(values_of(*backend, *biased), want_biased, 2e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vulkan, LinearOfType,
                         testing::Values(DType::f32, DType::f16, DType::q8_0, DType::q4_0, DType::q4_1,
                                         DType::q4_k, DType::q6_k),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(VulkanOperations, ARowOfALinearHasTheSameBitsBesideAnyNumberOfOthers) {
  QWENCH_NEEDS_VULKAN(device);
  ThreadPool pool(1);
  const auto backend = vulkan(pool);
  for (const DType dtype : {DType::f16, DType::q4_k}) {
    const Tensor weight(dtype, 70, 768, 5);
    const auto w = backend->load(weight.view, dtype);
    const std::vector<float> all = random_floats(80 * 768, 6);
    std::vector<float> first;
    for (const int rows : {1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 80}) {
      Filler filler(*backend);
      const auto x = filler.matrix(rows, 768, {all.begin(), all.begin() + rows * 768});
      auto y = backend->allocate(rows, 70);
      y->rows = rows;
      backend->linear(*x, std::array{Linear{w.get(), nullptr}}, std::array{y.get()});
      std::vector<float> row(70);
      backend->read_row(*y, 0, row);
      if (first.empty()) first = row;
      EXPECT_EQ(row, first) << name(dtype) << ", " << rows << " rows";
    }
  }
}

TEST(VulkanOperations, EmbedUnpacksEveryType) {
  QWENCH_NEEDS_VULKAN(device);
  ThreadPool pool(1);
  const auto backend = vulkan(pool);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_k}) {
    const Tensor table(dtype, 45, 256, 8);
    const auto weight = backend->load(table.view, dtype);
    const std::vector<TokenId> tokens{44, 0, 31, 32, 44};
    const Batch batch{tokens, {}, {}, {}, {}};
    auto out = backend->allocate(5, 256);
    out->rows = 5;
    backend->begin(batch);
    backend->embed(*weight, *out);
    std::vector<float> want;
    const std::vector<float> values = table.values();
    for (const TokenId token : tokens)
      want.insert(want.end(), values.begin() + token * 256, values.begin() + (token + 1) * 256);
    // bf16 numbers of ordinary size have fewer bits than f16 numbers.
    expect_near(values_of(*backend, *out), want, 0);
  }
}

TEST(VulkanOperations, WeightsLargerThanABindingAreReadInSlices) {
  QWENCH_NEEDS_VULKAN(device);
  ThreadPool pool(1);
  VulkanOptions options;
  options.binding_limit = 64 * 1024;  // two panels of f16 rows of 512 at most
  const auto backend = vulkan(pool, options);
  const Tensor table(DType::f16, 301, 480, 9);
  const auto weight = backend->load(table.view, DType::f16);
  const std::vector<float> values = table.values();
  const std::vector<TokenId> tokens{300, 0, 63, 64, 128};
  const Batch batch{tokens, {}, {}, {}, {}};
  auto out = backend->allocate(5, 480);
  auto y = backend->allocate(5, 301);
  out->rows = y->rows = 5;
  backend->begin(batch);
  backend->embed(*weight, *out);
  backend->linear(*out, std::array{Linear{weight.get(), nullptr}}, std::array{y.get()});
  std::vector<float> want;
  for (const TokenId token : tokens) {
    for (int n = 0; n < 301; ++n) {
      double sum = 0;
      for (int k = 0; k < 480; ++k)
        sum += static_cast<double>(values[static_cast<size_t>(token * 480 + k)]) *
               values[static_cast<size_t>(n * 480 + k)];
      want.push_back(static_cast<float>(sum));
    }
  }
  expect_near(values_of(*backend, *y), want, 5e-4);
}

TEST(VulkanOperations, WeightsWhereTheHostDoesNotWriteArriveByTheCopyQueue) {
  QWENCH_NEEDS_VULKAN(device);
  ThreadPool pool(2);
  VulkanOptions options;
  options.hides_memory = true;
  const auto backend = vulkan(pool, options);
  // 20 MB: more pieces than the staging buffer has halves. The first table is given up on its way.
  const Tensor table(DType::f32, 20'000, 256, 9);
  backend->load(table.view, DType::f32);
  const auto weight = backend->load(table.view, DType::f32);
  std::vector<TokenId> tokens;
  for (TokenId token = 7; token < 20'000; token += 331) tokens.push_back(token);
  const Batch batch{tokens, {}, {}, {}, {}};
  auto out = backend->allocate(static_cast<int>(tokens.size()), 256);
  out->rows = static_cast<int>(tokens.size());
  const int64_t before = backend->counts().submits;
  backend->begin(batch);
  backend->embed(*weight, *out);
  const std::vector<float> values = table.values();
  std::vector<float> want;
  for (const TokenId token : tokens)
    want.insert(want.end(), values.begin() + token * 256, values.begin() + (token + 1) * 256);
  expect_near(values_of(*backend, *out), want, 0);
  EXPECT_EQ(backend->counts().submits - before, 1);
  EXPECT_GE(before, 6);  // of both tables, in pieces of 8 MB at most
}

TEST(VulkanOperations, NormAdditionAndTheirFusionEqualTheCpu) {
  QWENCH_NEEDS_VULKAN(device);
  for (const int cols : {1, 31, 128, 577}) {
    for (const int rows : {1, 5}) {
      const auto count = static_cast<size_t>(rows * cols);
      const Tensor weight(DType::f32, {cols}, random_floats(static_cast<size_t>(cols), 1));
      for (const bool together : {true, false}) {
        expect_as_cpu(1e-5, [&](Backend& backend) {
          Filler filler(backend);
          const auto w = backend.load(weight.view, DType::f32);
          const auto x = filler.matrix(rows, cols, random_floats(count, 2));
          const auto y = filler.matrix(rows, cols, random_floats(count, 3));
          auto out = backend.allocate(rows, cols);
          out->rows = rows;
          backend.add(*x, *y);
          std::vector<float> all;
          if (!together) all = values_of(backend, *x);  // runs the addition by itself
          backend.rms_norm(*x, *w, 1e-6F, *out);
          for (const Matrix* matrix : {x.get(), out.get()}) {
            const std::vector<float> values = values_of(backend, *matrix);
            all.insert(all.end(), values.begin(), values.end());
          }
          return all;
        });
      }
    }
  }
}

TEST(VulkanOperations, SiluMulAndGatherRowsEqualTheCpu) {
  QWENCH_NEEDS_VULKAN(device);
  for (const int cols : {1, 33, 300}) {
    expect_as_cpu(2e-6, [&](Backend& backend) {
      Filler filler(backend);
      std::vector<float> gates = random_floats(static_cast<size_t>(4 * cols), 5);
      gates[0] = -120;
      gates[static_cast<size_t>(cols)] = 90;
      const auto gate = filler.matrix(4, cols, gates);
      const auto up = filler.matrix(4, cols, random_floats(static_cast<size_t>(4 * cols), 6));
      backend.silu_mul(*gate, *up);
      const std::vector<TokenId> tokens{0, 0, 0, 0};
      const std::vector<int32_t> rows{1, 3};
      const Batch batch{tokens, {}, {}, {}, rows};
      backend.begin(batch);
      auto out = backend.allocate(2, cols);
      out->rows = 2;
      backend.gather_rows(*gate, *out);
      std::vector<float> all = values_of(backend, *gate);
      const std::vector<float> gathered = values_of(backend, *out);
      all.insert(all.end(), gathered.begin(), gathered.end());
      return all;
    });
  }
}

TEST(VulkanOperations, ArgmaxTakesTheFirstOfEqualsAndRefusesWhatIsNotFinite) {
  QWENCH_NEEDS_VULKAN(device);
  ThreadPool pool(1);
  const auto backend = vulkan(pool);
  Filler filler(*backend);
  for (const int cols : {1, 7, 128, 1000}) {
    std::vector<float> values = random_floats(static_cast<size_t>(6 * cols), 12);
    const auto at = [&](int row, int col) -> float& { return values[static_cast<size_t>(row * cols + col)]; };
    for (int c = 0; c < cols; ++c) at(1, c) = -5;
    at(2, cols - 1) = 50;
    at(3, cols / 2) = std::numeric_limits<float>::quiet_NaN();
    at(4, cols / 3) = -std::numeric_limits<float>::infinity();
    for (int c = 0; c < cols; ++c) at(5, c) = -3.4e38F;
    const auto x = filler.matrix(6, cols, values);
    std::vector<TokenId> ids(6);
    backend->argmax(*x, cols, ids);
    const auto row = values.begin();
    EXPECT_EQ(ids[0], std::max_element(row, row + cols) - row);
    EXPECT_EQ(ids[1], 0);
    EXPECT_EQ(ids[2], cols - 1);
    EXPECT_EQ(ids[3], -1);
    EXPECT_EQ(ids[4], -1);
    EXPECT_EQ(ids[5], 0);
    if (cols < 2) continue;
    backend->argmax(*x, cols - 1, ids);  // the last column is none of the vocabulary's
    EXPECT_NE(ids[2], cols - 1);
  }
}

TEST(VulkanOperations, TopKEqualsTheCpuOverOddSizesAndTies) {
  QWENCH_NEEDS_VULKAN(device);
  ThreadPool pool(1);
  const auto cpu = make_cpu_backend(pool);
  for (const int cols : {1, 7, 130, 511, 513, 5000, 70001}) {
    std::vector<float> values = random_floats(static_cast<size_t>(6 * cols), 12);
    const auto row = [&](int r) {
      return std::span(values).subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols));
    };
    for (float& value : row(1)) value = std::round(value * 4) / 4;  // ties, zeros of either sign among them
    for (float& value : row(2)) value = -5;
    std::sort(row(3).begin(), row(3).end());
    for (size_t i = 0; i < row(4).size(); i += 512)
      row(4)[i] += 100;  // all largest in one slot of the shader
    for (float& value : row(5)) value = -3.4e38F;
    row(5).back() = 1e-42F;
    for (const int k : {1, 2, 21, 64, kMostTop}) {
      for (const int valid : {cols, cols - 1}) {
        if (k > valid) continue;
        SCOPED_TRACE(testing::Message() << valid << " of " << cols << " columns, k " << k);
        const auto top_of = [&](Backend& backend) {
          Filler filler(backend);
          const auto x = filler.matrix(6, cols, values);
          std::vector<TokenId> ids(static_cast<size_t>(6 * k));
          std::vector<float> largest(ids.size());
          backend.top_k(*x, valid, k, ids, largest);
          return std::pair(ids, largest);
        };
        const auto [ids, largest] = top_of(shared_device());
        const auto [want_ids, want_largest] = top_of(*cpu);
        EXPECT_EQ(ids, want_ids);
        EXPECT_EQ(largest, want_largest);
      }
    }
  }
}

TEST(VulkanOperations, TopKRefusesWhatIsNotFinite) {
  QWENCH_NEEDS_VULKAN(device);
  Backend& backend = shared_device();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int cols : {2, 700}) {
    std::vector<float> values = random_floats(static_cast<size_t>(5 * cols), 12);
    const auto at = [&](int row, int col) -> float& { return values[static_cast<size_t>(row * cols + col)]; };
    at(1, cols / 2) = std::numeric_limits<float>::quiet_NaN();
    at(2, cols / 3) = -kInfinity;
    at(3, 0) = kInfinity;
    at(4, cols - 1) = kInfinity;
    Filler filler(backend);
    const auto x = filler.matrix(5, cols, values);
    std::vector<TokenId> ids(5);
    std::vector<float> largest(5);
    backend.top_k(*x, cols, 1, ids, largest);
    EXPECT_EQ(ids[0], std::max_element(values.begin(), values.begin() + cols) - values.begin());
    for (const int row : {1, 2, 3, 4}) EXPECT_EQ(ids[static_cast<size_t>(row)], -1) << "row " << row;
    if (cols < 3) continue;
    backend.top_k(*x, cols - 1, 1, ids, largest);  // the last column is none of the vocabulary's
    EXPECT_GE(ids[4], 0);
  }
}

/// A batch of sequences with its rotations.
struct Sequences {
  struct Part {
    int start;
    int rows;
    std::vector<int32_t> blocks;
  };
  Sequences(std::vector<Part> sequences, int head_dim) : parts(std::move(sequences)) {
    for (const Part& part : parts) {
      rows.push_back({static_cast<int>(tokens.size()), part.rows, part.start + part.rows, part.blocks});
      for (int p = part.start; p < part.start + part.rows; ++p) {
        tokens.push_back(0);
        for (int i = 0; i < head_dim / 2; ++i) {
          cos.push_back(std::cos(0.1F * static_cast<float>(p * (i + 1))));
          sin.push_back(std::sin(0.1F * static_cast<float>(p * (i + 1))));
        }
      }
    }
  }
  Batch batch() const { return {tokens, cos, sin, rows, {}}; }
  int count() const { return static_cast<int>(tokens.size()); }

  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  std::vector<Part> parts;
  std::vector<TokenId> tokens;
  std::vector<float> cos;
  std::vector<float> sin;
  std::vector<SequenceRows> rows;
};

std::vector<int32_t> blocks_from(int first, int count) {
  std::vector<int32_t> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(first + (i * 7 + 3) % count);
  return blocks;
}

TEST(VulkanOperations, RopeWithAndWithoutNormEqualsTheCpu) {
  QWENCH_NEEDS_VULKAN(device);
  for (const int head_dim : {2, 24, 64, 128, 256}) {
    const Sequences sequences({{0, 3, blocks_from(0, 1)}, {17, 2, blocks_from(1, 2)}}, head_dim);
    const Tensor norm(DType::f32, {head_dim}, random_floats(static_cast<size_t>(head_dim), 1));
    for (const bool norms : {true, false}) {
      for (const RopePairing pairing : {RopePairing::halves, RopePairing::interleaved}) {
        expect_as_cpu(1e-5, [&](Backend& backend) {
          Filler filler(backend);
          const auto w = backend.load(norm.view, DType::f32);
          const auto x = filler.matrix(5, 3 * head_dim, random_floats(static_cast<size_t>(15 * head_dim), 2));
          const Batch batch = sequences.batch();
          backend.begin(batch);
          backend.rope(*x, norms ? w.get() : nullptr, 1e-6F, head_dim, pairing);
          return values_of(backend, *x);
        });
      }
    }
  }
}

struct AttentionCase {
  DType cell;
  int heads;
  int kv_heads;
  int head_dim;
  int window;
};

class AttentionOf : public testing::TestWithParam<AttentionCase> {};

// The keys and values come by store_kv, fused with the rotations and by itself.
TEST_P(AttentionOf, PagedBatchesEqualTheCpu) {
  QWENCH_NEEDS_VULKAN(device);
  const AttentionCase& c = GetParam();
  // A key that differs by its last bit may be rounded to the other cell.
  const double tolerance = c.cell == DType::f32 ? 2e-5 : c.cell == DType::f16 ? 5e-4 : 4e-3;
  for (const bool fused : {true, false}) {
    expect_as_cpu(tolerance, [&](Backend& backend) {
      const auto cache = backend.make_kv_cache(c.cell, 2, 100, c.kv_heads, c.head_dim);
      const std::vector<int32_t> long_table = blocks_from(0, 70);  // 1120 positions
      const std::vector<int32_t> short_table = blocks_from(70, 5);
      // The first 1090 positions of a long sequence, then more of it beside a prompt in two chunks.
      const std::vector<std::vector<Sequences::Part>> passes = {
          {{0, 1090, long_table}}, {{1090, 5, long_table}, {0, 30, short_table}}, {{1095, 1, long_table}},
          {{30, 9, short_table}},  {{39, 1, short_table}, {1096, 1, long_table}},
      };
      std::vector<float> all;
      uint32_t seed = 10;
      for (const auto& parts : passes) {
        const Sequences sequences(parts, c.head_dim);
        const int rows = sequences.count();
        Filler filler(backend);
        const auto numbers = [&](int heads) {
          return random_floats(static_cast<size_t>(rows * heads * c.head_dim), ++seed);
        };
        const auto q = filler.matrix(rows, c.heads * c.head_dim, numbers(c.heads));
        const auto k = filler.matrix(rows, c.kv_heads * c.head_dim, numbers(c.kv_heads));
        const auto v = filler.matrix(rows, c.kv_heads * c.head_dim, numbers(c.kv_heads));
        auto out = backend.allocate(rows, c.heads * c.head_dim);
        out->rows = rows;
        const Batch batch = sequences.batch();
        backend.begin(batch);
        backend.rope(*q, nullptr, 0, c.head_dim, RopePairing::halves);
        backend.rope(*k, nullptr, 0, c.head_dim, RopePairing::halves);
        if (!fused) values_of(backend, *k);  // runs what there is so far
        backend.store_kv(*cache, 1, *k, *v);
        if (rows > 1000) {  // stored only: computing it takes software devices too long
          values_of(backend, *k);
          continue;
        }
        backend.attention(*cache, 1, *q, c.window, *out);
        const std::vector<float> values = values_of(backend, *out);
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Vulkan, AttentionOf,
    testing::Values(AttentionCase{DType::f32, 4, 2, 24, 0}, AttentionCase{DType::f16, 4, 2, 24, 70},
                    AttentionCase{DType::f16, 3, 1, 64, 0}, AttentionCase{DType::f32, 2, 2, 128, 600},
                    AttentionCase{DType::f16, 2, 1, 256, 0}, AttentionCase{DType::bf16, 4, 2, 24, 70},
                    AttentionCase{DType::bf16, 2, 1, 128, 0}, AttentionCase{DType::q8_0, 4, 2, 64, 0},
                    AttentionCase{DType::q8_0, 3, 1, 128, 70}, AttentionCase{DType::q8_0, 2, 1, 192, 0}),
    [](const auto& c) {
      return std::string(name(c.param.cell)) + "_heads_of_" + std::to_string(c.param.head_dim);
    });

TEST(VulkanOperations, CellsThatItsShadersDoNotReadAreRefused) {
  QWENCH_NEEDS_VULKAN(device);
  for (const auto& [cell, head_dim] : {std::pair(DType::q4_0, 64), std::pair(DType::q8_0, 96)}) {
    try {
      shared_device().make_kv_cache(cell, 1, 1, 1, head_dim);
      ADD_FAILURE() << name(cell);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_NE(std::string(error.what()).find("--device cpu"), std::string::npos) << error.what();
    }
  }
}

TEST(VulkanOperations, ACopiedBlockHoldsTheSame) {
  QWENCH_NEEDS_VULKAN(device);
  expect_as_cpu(1e-5, [](Backend& backend) {
    const auto cache = backend.make_kv_cache(DType::f32, 2, 4, 2, 24);
    Filler filler(backend);
    const auto k = filler.matrix(10, 48, random_floats(480, 1));
    const auto v = filler.matrix(10, 48, random_floats(480, 2));
    const auto q = filler.matrix(10, 96, random_floats(960, 3));
    const Sequences first({{0, 10, {2}}}, 24);
    const Batch stored = first.batch();
    backend.begin(stored);
    backend.store_kv(*cache, 1, *k, *v);
    backend.copy_block(*cache, 2, 0);
    const Sequences second({{0, 10, {0}}}, 24);
    const Batch batch = second.batch();
    backend.begin(batch);
    auto out = backend.allocate(10, 96);
    out->rows = 10;
    backend.attention(*cache, 1, *q, 0, *out);
    return values_of(backend, *out);
  });
}

}  // namespace
}  // namespace qwench
