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
class AttentionProblem {
 public:
  explicit AttentionProblem(const Shape& shape)
      : s_(shape), width_(static_cast<size_t>(s_.heads) * head_dim()) {
    const auto positions = static_cast<size_t>(s_.context);
    const size_t cells = static_cast<size_t>(s_.kv_heads) * head_dim();
    q_ = test::random_floats(positions * width_, 1);
    k_ = test::random_floats(positions * cells, 2);
    v_ = test::random_floats(positions * cells, 3);
    const int used = (s_.context + kKvBlock - 1) / kKvBlock;
    for (int i = 0; i < used; ++i) table_.push_back((i * 7 + 3) % (2 * used + 1));
    const size_t blocks = (2 * static_cast<size_t>(used) + 1) * static_cast<size_t>(s_.kv_heads);
    head_bytes_ = bytes_of(s_.cell, head_dim() * kKvBlock);
    // NaN in every cell of any type: bytes of ones.
    keys_.assign(blocks * head_bytes_, std::byte{0xFF});
    values_ = keys_;
    for (size_t p = 0; p < positions; ++p) {
      for (size_t h = 0; h < static_cast<size_t>(s_.kv_heads); ++h) {
        const size_t block = static_cast<size_t>(table_[p / kKvBlock]);
        const size_t at = (block * static_cast<size_t>(s_.kv_heads) + h) * head_bytes_;
        const int slot = static_cast<int>(p % kKvBlock);
        float* key = k_.data() + p * cells + h * head_dim();
        float* value = v_.data() + p * cells + h * head_dim();
        store_key(s_.cell, key, s_.head_dim, slot, keys_.data() + at);
        store_value(s_.cell, value, s_.head_dim, slot, values_.data() + at);
        // What the cell type makes of them is what attention is to be computed with.
        round(key);
        round(value);
      }
    }
  }

  // The outputs of positions [first, first + rows), `together` query vectors at a time.
  std::vector<float> run(int first, int rows, int together = AttentionScratch::kQueries) const {
    AttentionScratch scratch(s_.head_dim);
    std::vector<float> out(static_cast<size_t>(rows) * width_, NAN);
    const AttentionArgs a = args(first, out);
    const int queries = rows * s_.heads / s_.kv_heads;
    for (int h = 0; h < s_.kv_heads; ++h) {
      for (int i = 0; i < queries; i += together)
        attention(a, {h, i, std::min(queries, i + together)}, scratch);
    }
    return out;
  }

  // The same, each part by itself.
  std::vector<float> run_by_parts(int first, int rows) const {
    AttentionScratch scratch(s_.head_dim);
    std::vector<float> out(static_cast<size_t>(rows) * width_, NAN);
    const AttentionArgs a = args(first, out);
    const int queries = rows * s_.heads / s_.kv_heads;
    for (int h = 0; h < s_.kv_heads; ++h) {
      const AttentionQueries all{h, 0, queries};
      const AttentionParts parts = attention_parts(a, all);
      const auto size = static_cast<size_t>(queries * attention_part_size(scratch.width));
      std::vector<float> results(size * static_cast<size_t>(parts.last - parts.first));
      for (int part = parts.last; part-- > parts.first;) {
        attention_part(a, all, part, scratch,
                       results.data() + size * static_cast<size_t>(part - parts.first));
      }
      attention_merge(a, all, results.data(), scratch);
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

  AttentionArgs args(int first, std::vector<float>& out) const {
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
    return a;
  }

  void round(float* x) const {
    std::vector<std::byte> cells(head_bytes_);
    store_value(s_.cell, x, s_.head_dim, 0, cells.data());
    unpack_reference(s_.cell, cells.data(), 0, s_.head_dim, x);
  }

  Shape s_;
  size_t width_;
  size_t head_bytes_ = 0;  // of a block of one kv head
  std::vector<float> q_;   // [context, heads * head_dim]
  std::vector<float> k_;   // [context, kv_heads * head_dim]
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
    all.push_back({14, 2, 64, 70, 0, cell});
  }
  all.push_back({4, 2, 64, 130, 0, DType::q8_0});
  all.push_back({14, 2, 32, 100, 20, DType::q8_0});
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
    const AttentionProblem problem(shape);
    for_each_isa([&](const std::string&) { problem.expect_close(problem.run(0, shape.context), 0); });
  }
}

TEST(Attention, APromptInChunksIsTheSameBitForBit) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(describe(shape));
    const AttentionProblem problem(shape);
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

// Positions in several parts, the last few of which are computed.
TEST(Attention, ALongSequenceIsTheSameBitForBitInOneGoAndByParts) {
  for (const DType cell : {DType::f32, DType::f16, DType::q8_0}) {
    for (const int window : {0, 1500}) {
      const Shape shape{4, 2, 32, 2 * kKeyPart + 70, window, cell};
      SCOPED_TRACE(describe(shape));
      const AttentionProblem problem(shape);
      for_each_isa([&](const std::string&) {
        const int first = shape.context - 24;
        const std::vector<float> whole = problem.run(first, 24);
        problem.expect_close(whole, first);
        expect_equal_bits(problem.run_by_parts(first, 24), whole.data());
        for (int i = 0; i < 24; i += 5) {
          const float* expected = whole.data() + static_cast<size_t>(i) * problem.width();
          expect_equal_bits(problem.run(first + i, 1), expected);
          expect_equal_bits(problem.run_by_parts(first + i, 1), expected);
        }
      });
    }
  }
}

TEST(Attention, QueriesTakenTogetherDoNotTouchEachOther) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(describe(shape));
    const AttentionProblem problem(shape);
    for_each_isa([&](const std::string&) {
      const std::vector<float> whole = problem.run(0, shape.context);
      for (const int together : {1, 2, 3, 5, 31})
        expect_equal_bits(problem.run(0, shape.context, together), whole.data());
    });
  }
}

}  // namespace
}  // namespace qwench
