#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "isas.h"

namespace qwench {
namespace {

using test::for_each_isa;

struct Shape {
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 32;
  int context = 100;
  int window = 0;
  DType cell = DType::f32;
};

// One sequence of `context` positions in a cache whose blocks are scattered and otherwise full of NaN.
class Problem {
 public:
  explicit Problem(const Shape& shape) : s_(shape), width_(static_cast<size_t>(s_.heads) * head_dim()) {
    const auto positions = static_cast<size_t>(s_.context);
    const size_t cells = static_cast<size_t>(s_.kv_heads) * head_dim();
    q_ = test::random_floats(positions * width_, 1);
    k_ = test::random_floats(positions * cells, 2);
    v_ = test::random_floats(positions * cells, 3);
    const int used = (s_.context + kKvBlock - 1) / kKvBlock;
    for (int i = 0; i < used; ++i) table_.push_back((i * 7 + 3) % (2 * used + 1));
    const size_t count = (2 * static_cast<size_t>(used) + 1) * kKvBlock * cells;
    const std::vector<float> nan(count, std::numeric_limits<float>::quiet_NaN());
    keys_.resize(bytes_of(s_.cell, count));
    pack(s_.cell, nan.data(), static_cast<int64_t>(count), keys_.data());
    values_ = keys_;
    for (size_t p = 0; p < positions; ++p) {
      for (size_t h = 0; h < static_cast<size_t>(s_.kv_heads); ++h) {
        const size_t block = static_cast<size_t>(table_[p / kKvBlock]);
        const size_t at =
            ((block * static_cast<size_t>(s_.kv_heads) + h) * kKvBlock + p % kKvBlock) * head_dim();
        store(k_, p * cells + h * head_dim(), at, keys_);
        store(v_, p * cells + h * head_dim(), at, values_);
      }
    }
  }

  // The outputs of positions [first, first + rows), `together` query vectors at a time.
  std::vector<float> run(int first, int rows, int together = AttentionScratch::kQueries) const {
    AttentionScratch scratch(s_.head_dim);
    std::vector<float> out(static_cast<size_t>(rows) * width_, NAN);
    AttentionArgs a;
    a.q = q_.data() + static_cast<size_t>(first) * width_;
    a.q_stride = static_cast<int64_t>(width_);
    a.out = out.data();
    a.out_stride = a.q_stride;
    a.k = keys_.data();
    a.v = values_.data();
    a.cell = s_.cell;
    a.heads = s_.heads;
    a.kv_heads = s_.kv_heads;
    a.head_dim = s_.head_dim;
    a.window = s_.window;
    a.first_position = first;
    a.block_table = table_.data();
    const int queries = rows * s_.heads / s_.kv_heads;
    for (int h = 0; h < s_.kv_heads; ++h) {
      for (int i = 0; i < queries; i += together)
        attention(a, h, i, std::min(queries, i + together), scratch);
    }
    return out;
  }

  void expect_close(const std::vector<float>& out, int first) const {
    const size_t cells = static_cast<size_t>(s_.kv_heads) * head_dim();
    const int rows = static_cast<int>(out.size() / width_);
    for (int r = 0; r < rows; ++r) {
      const int position = first + r;
      const int oldest = s_.window > 0 ? std::max(0, position - s_.window + 1) : 0;
      for (size_t h = 0; h < static_cast<size_t>(s_.heads); ++h) {
        const float* q = q_.data() + static_cast<size_t>(position) * width_ + h * head_dim();
        const size_t kv = h / static_cast<size_t>(s_.heads / s_.kv_heads) * head_dim();
        std::vector<double> weights;
        double highest = -INFINITY;
        for (int p = oldest; p <= position; ++p) {
          double score = 0;
          for (size_t c = 0; c < head_dim(); ++c)
            score += double{q[c]} * k_[static_cast<size_t>(p) * cells + kv + c];
          weights.push_back(score / std::sqrt(double(s_.head_dim)));
          highest = std::max(highest, weights.back());
        }
        double total = 0;
        for (double& w : weights) total += w = std::exp(w - highest);
        for (size_t c = 0; c < head_dim(); ++c) {
          double sum = 0;
          for (size_t p = 0; p < weights.size(); ++p) {
            sum += weights[p] / total * v_[(static_cast<size_t>(oldest) + p) * cells + kv + c];
          }
          ASSERT_NEAR(out[static_cast<size_t>(r) * width_ + h * head_dim() + c], sum, 3e-6)
              << "position " << position << ", head " << h << ", element " << c;
        }
      }
    }
  }

  size_t width() const { return width_; }

 private:
  size_t head_dim() const { return static_cast<size_t>(s_.head_dim); }

  // Stores one head and keeps in `values` what the cell type makes of it.
  void store(std::vector<float>& values, size_t from, size_t at, std::vector<std::byte>& cells) {
    std::byte* cell = cells.data() + bytes_of(s_.cell, at);
    pack(s_.cell, values.data() + from, s_.head_dim, cell);
    unpack_reference(s_.cell, cell, 0, s_.head_dim, values.data() + from);
  }

  Shape s_;
  size_t width_;
  std::vector<float> q_;  // [context, heads * head_dim]
  std::vector<float> k_;  // [context, kv_heads * head_dim]
  std::vector<float> v_;
  std::vector<std::byte> keys_;
  std::vector<std::byte> values_;
  std::vector<int32_t> table_;
};

void expect_equal_bits(const std::vector<float>& found, const float* expected) {
  ASSERT_EQ(std::memcmp(found.data(), expected, found.size() * sizeof(float)), 0);
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const int head_dim : {2, 16, 24, 64, 80, 96, 128, 256})
    all.push_back({4, 2, head_dim, 75, 0, DType::f32});
  for (const int group : {1, 2, 4, 7, 8, 40}) all.push_back({group * 2, 2, 16, 70, 0, DType::f32});
  for (const int window : {1, 5, 16, 63, 64, 65, 200}) all.push_back({4, 2, 16, 180, window, DType::f32});
  for (const int context : {1, 15, 16, 17, 63, 64, 65, 128, 129})
    all.push_back({2, 1, 16, context, 0, DType::f32});
  for (const DType cell : {DType::f16, DType::bf16}) {
    all.push_back({4, 2, 64, 130, 0, cell});
    all.push_back({6, 2, 24, 130, 40, cell});
  }
  return all;
}

std::string describe(const Shape& s) {
  return std::to_string(s.heads) + " heads, " + std::to_string(s.kv_heads) + " kv heads of " +
         std::to_string(s.head_dim) + ", context " + std::to_string(s.context) + ", window " +
         std::to_string(s.window) + ", " + std::string(name(s.cell));
}

TEST(Attention, EqualsSoftmaxInDoublePrecision) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(describe(shape));
    const Problem problem(shape);
    for_each_isa([&](const std::string&) { problem.expect_close(problem.run(0, shape.context), 0); });
  }
}

TEST(Attention, APromptInChunksIsTheSameBitForBit) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(describe(shape));
    const Problem problem(shape);
    for_each_isa([&](const std::string&) {
      const std::vector<float> whole = problem.run(0, shape.context);
      for (const int chunk : {1, 3, 16, 50}) {
        for (int first = 0; first < shape.context; first += chunk) {
          const int rows = std::min(chunk, shape.context - first);
          expect_equal_bits(problem.run(first, rows),
                            whole.data() + static_cast<size_t>(first) * problem.width());
        }
      }
    });
  }
}

TEST(Attention, QueriesTakenTogetherDoNotTouchEachOther) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(describe(shape));
    const Problem problem(shape);
    for_each_isa([&](const std::string&) {
      const std::vector<float> whole = problem.run(0, shape.context);
      for (const int together : {1, 2, 3, 5, 31})
        expect_equal_bits(problem.run(0, shape.context, together), whole.data());
    });
  }
}

}  // namespace
}  // namespace qwench
