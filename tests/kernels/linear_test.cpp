#include "kernels/linear.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>

#include "isas.h"
#include "kernels/panels.h"
#include "kernels/plain_panels.h"
#include "quantized.h"

namespace qwench {
namespace {

using test::for_each_isa;

// y = x wT + b with everything that the kernel needs.
struct Problem {
  Problem(DType type, int64_t row_count, int64_t col_count, int64_t out_count, bool with_bias)
      : dtype(type),
        rows(row_count),
        cols(col_count),
        outs(out_count),
        stride((cols + 15) / 16 * 16),
        x(static_cast<size_t>(rows * stride)),
        w(test::random_weights(dtype, outs * cols, 7)),
        bias(with_bias ? test::random_floats(static_cast<size_t>(outs), 9) : std::vector<float>()),
        scratch(static_cast<size_t>(kLinearScratch)) {
    // Row r holds the same numbers whatever `rows` is.
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<float> row =
          test::random_floats(static_cast<size_t>(cols), static_cast<uint32_t>(100 + r));
      std::copy(row.begin(), row.end(), x.begin() + r * stride);
    }
  }

  std::vector<float> run(int64_t begin, int64_t end) {
    std::vector<float> y(static_cast<size_t>(rows * outs), NAN);
    LinearArgs args;
    args.x = x.data();
    args.x_stride = stride;
    args.rows = rows;
    args.cols = cols;
    args.dtype = dtype;
    const std::vector<std::byte> weights = in_rows ? w : kept();
    args.w = weights.data();
    args.in_rows = in_rows;
    args.outs = outs;
    args.bias = bias.empty() ? nullptr : bias.data();
    args.y = y.data();
    args.y_stride = outs;
    const test::Quantized q(x, rows, cols, stride);
    args.quantized = &q.rows;
    const test::Bytes b(x, rows, cols, stride);
    if (multiplied_by_bytes(dtype)) args.bytes = &b.rows;
    linear(args, begin, end, scratch.data());
    return y;
  }
  std::vector<float> run() { return run(0, outs); }

  // The weights as `linear` wants them.
  std::vector<std::byte> kept() const {
    if (!is_quantized(dtype)) {
      std::vector<std::byte> panels(
          plain_panels_bytes(dtype, static_cast<uint64_t>(outs), static_cast<uint64_t>(cols)));
      pack_plain_panels(dtype, w.data(), outs, cols, 0, outs, panels.data());
      return panels;
    }
    std::vector<std::byte> panels(
        panel_bytes(dtype, static_cast<uint64_t>(outs), static_cast<uint64_t>(cols)));
    pack_panels(dtype, w.data(), outs, cols, 0, outs, panels.data());
    return panels;
  }

  // The activations that are multiplied: as given, or as quantized where the weights are.
  std::vector<float> multiplied() const {
    if (multiplied_by_bf16(dtype)) return test::rounded_to_bf16(x);
    if (!is_quantized(dtype)) return x;
    return multiplied_by_bytes(dtype) ? test::Bytes(x, rows, cols, stride).unpacked()
                                      : test::Quantized(x, rows, cols, stride).unpacked();
  }

  void expect_close(const std::vector<float>& y) const {
    std::vector<float> values(static_cast<size_t>(outs * cols));
    unpack_reference(dtype, w.data(), 0, outs * cols, values.data());
    const std::vector<float> used = multiplied();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < outs; ++n) {
        double sum = bias.empty() ? 0.0 : bias[static_cast<size_t>(n)];
        double size = std::fabs(sum);
        for (int64_t k = 0; k < cols; ++k) {
          const double product =
              double{used[static_cast<size_t>(r * stride + k)]} * values[static_cast<size_t>(n * cols + k)];
          sum += product;
          size += std::fabs(product);
        }
        const double found = y[static_cast<size_t>(r * outs + n)];
        ASSERT_NEAR(found, sum, 1e-6 * size + 1e-30) << "row " << r << ", column " << n;
      }
    }
  }

  DType dtype;
  int64_t rows;
  int64_t cols;
  int64_t outs;
  int64_t stride;
  bool in_rows = false;
  std::vector<float> x;
  std::vector<std::byte> w;
  std::vector<float> bias;
  std::vector<float> scratch;
};

std::vector<int64_t> widths(DType dtype) {
  const int64_t block = traits(dtype).block_size;
  if (block == 256) return {256, 1280, 2304};
  if (block == 32) return {32, 96, 1056, 2080};
  return {1, 7, 72, 172, 896, 1025, 2050};
}

TEST(Linear, EqualsASumInDoublePrecision) {
  for (const DType dtype : test::all_dtypes()) {
    for (const int64_t cols : widths(dtype)) {
      SCOPED_TRACE(std::string(name(dtype)) + ", " + std::to_string(cols) + " columns");
      for (const int64_t rows : {1, 2, 3, 4, 5, 13, 33}) {
        Problem problem(dtype, rows, cols, 17, rows % 2 == 0);
        test::for_each_way(dtype, [&](const std::string&) { problem.expect_close(problem.run()); });
      }
    }
  }
}

TEST(Linear, WeightsInRowsGiveTheSameBitsAsPanels) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t cols : {1, 7, 64, 515, 896}) {
      for (const int64_t outs : {1, 16, 41}) {
        for (const int64_t rows : {1, 5, 13, 35}) {
          SCOPED_TRACE(fmt::format("{}, {} rows, [{}, {}]", name(dtype), rows, outs, cols));
          Problem problem(dtype, rows, cols, outs, true);
          for_each_isa([&](const std::string&) {
            problem.in_rows = false;
            const std::vector<float> panels = problem.run();
            problem.in_rows = true;
            EXPECT_EQ(problem.run(), panels);
          });
        }
      }
    }
  }
}

// The largest sums that integers must hold: every weight and every activation at its limit.
TEST(Linear, QuantizedSumsDoNotOverflow) {
  for (const DType dtype : test::all_dtypes()) {
    if (!is_quantized(dtype)) continue;
    SCOPED_TRACE(std::string(name(dtype)));
    for (const int64_t rows : {1, 7, 18}) {
      for (const unsigned fill : {0x00U, 0x7FU, 0x80U, 0x81U, 0xFFU}) {
        for (const float sign : {1.0F, -1.0F, 0.0F}) {
          Problem problem(dtype, rows, 512, 9, false);
          test::fill_quants(dtype, static_cast<std::byte>(fill), problem.w);
          for (size_t i = 0; i < problem.x.size(); ++i) {
            problem.x[i] = 3.0F * (sign != 0 ? sign : i % 2 == 0 ? 1.0F : -1.0F);
          }
          test::for_each_way(dtype, [&](const std::string&) { problem.expect_close(problem.run()); });
        }
      }
    }
  }
}

// Memory that ends where none follows.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) : all_((bytes + kPage - 1) / kPage * kPage + kPage) {
    base_ = static_cast<std::byte*>(
        mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + all_ - kPage, kPage, PROT_NONE);
    start_ = base_ + all_ - kPage - bytes;
  }
  ~GuardedMemory() { munmap(base_, all_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  std::byte* start() const { return start_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t all_;
  std::byte* base_ = nullptr;
  std::byte* start_ = nullptr;
};

TEST(Linear, ReadsNothingBehindActivations) {
  for (const DType dtype : {DType::q2_k, DType::q4_k, DType::q4_0}) {
    test::for_each_way(dtype, [&](const std::string&) {
      for (const int64_t rows : {9, 17}) {
        Problem problem(dtype, rows, 512, 16, false);
        const GuardedMemory words(QuantizedRows::bytes(rows, 512));
        const GuardedMemory bytes(ByteRows::bytes(rows, 512));
        const QuantizedRows q = QuantizedRows::in(words.start(), rows, 512);
        const ByteRows b = ByteRows::in(bytes.start(), rows, 512);
        for (int64_t r = 0; r < rows; ++r) {
          quantize_row(problem.x.data() + r * problem.stride, 512, r, q);
          quantize_row_to_bytes(problem.x.data() + r * problem.stride, 512, r, b);
        }
        std::vector<float> y(static_cast<size_t>(rows * 16));
        const std::vector<std::byte> weights = problem.kept();
        LinearArgs args;
        args.rows = rows;
        args.cols = 512;
        args.dtype = dtype;
        args.w = weights.data();
        args.y = y.data();
        args.y_stride = 16;
        args.quantized = &q;
        if (multiplied_by_bytes(dtype)) args.bytes = &b;
        linear(args, 0, 16, problem.scratch.data());
        EXPECT_EQ(y, problem.run());
      }
    });
  }
}

TEST(Linear, ARowThatIsNotFiniteGivesNoNumberAndLeavesTheOthersAlone) {
  for (const DType dtype : test::all_dtypes()) {
    SCOPED_TRACE(std::string(name(dtype)));
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      test::for_each_way(dtype, [&](const std::string&) {
        Problem problem(dtype, 3, 512, 19, false);
        const std::vector<float> good = problem.run();
        problem.x[static_cast<size_t>(problem.stride + 300)] = bad;
        const std::vector<float> y = problem.run();
        for (size_t n = 0; n < 19; ++n) {
          EXPECT_EQ(y[n], good[n]);
          EXPECT_FALSE(std::isfinite(y[19 + n])) << n;
          EXPECT_EQ(y[38 + n], good[38 + n]);
        }
      });
    }
  }
}

TEST(Linear, ManyOutputsPassThroughSeveralPanels) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_k, DType::q6_k}) {
    for (const int64_t rows : {9, 50}) {
      Problem problem(dtype, rows, 1280, 277, true);
      test::for_each_way(dtype, [&](const std::string&) { problem.expect_close(problem.run()); });
    }
  }
}

TEST(Linear, ARowIsTheSameBitForBitInABatchOfAnySize) {
  for (const DType dtype : test::all_dtypes()) {
    SCOPED_TRACE(std::string(name(dtype)));
    const int64_t cols = is_quantized(dtype) ? 1280 : 1060;
    const int64_t outs = 21;
    test::for_each_way(dtype, [&](const std::string&) {
      std::vector<float> alone;  // [70, outs]: each row by itself
      Problem all(dtype, 70, cols, outs, true);
      for (int64_t r = 0; r < 70; ++r) {
        Problem one(dtype, 1, cols, outs, true);
        std::copy_n(all.x.begin() + r * all.stride, cols, one.x.begin());
        const std::vector<float> y = one.run();
        alone.insert(alone.end(), y.begin(), y.end());
      }
      for (int64_t rows = 1; rows <= 70; ++rows) {
        all.rows = rows;
        const std::vector<float> y = all.run();
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0) << rows << " rows";
      }
      if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::q4_1) {
        Problem large(dtype, 512, cols, outs, true);
        const std::vector<float> y = large.run();
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), alone.size() * sizeof(float)), 0) << "512 rows";
      }
    });
  }
}

TEST(Linear, AnOutputIsTheSameBitForBitWhateverRangeItIsComputedIn) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q6_k}) {
    SCOPED_TRACE(std::string(name(dtype)));
    for (const int64_t rows : {1, 3, 10, 37}) {
      Problem problem(dtype, rows, 1280, 23, false);
      test::for_each_way(dtype, [&](const std::string&) {
        const std::vector<float> whole = problem.run();
        for (const auto& [begin, end] : {std::pair{0, 1}, {1, 6}, {4, 23}, {11, 14}}) {
          const std::vector<float> part = problem.run(begin, end);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t n = 0; n < problem.outs; ++n) {
              const auto at = static_cast<size_t>(r * problem.outs + n);
              if (n >= begin && n < end) {
                ASSERT_EQ(part[at], whole[at]);
              } else {
                ASSERT_TRUE(std::isnan(part[at]))
                    << "column " << n << " was written by [" << begin << ", " << end << ")";
              }
            }
          }
        }
      });
    }
  }
}

TEST(Linear, ReadsUnalignedWeightsAndNothingBehindThem) {
  for (const DType dtype : test::all_dtypes()) {
    SCOPED_TRACE(std::string(name(dtype)));
    const int64_t cols = is_quantized(dtype) ? 256 : 37;
    for (const int64_t rows : {1, 4, 6, 18}) {
      Problem problem(dtype, rows, cols, 5, false);
      const std::vector<float> expected = problem.run();
      std::vector<std::byte> weights = problem.kept();
      weights.insert(weights.begin(), std::byte{0});
      weights.shrink_to_fit();
      LinearArgs args;
      std::vector<float> y(expected.size());
      args.x = problem.x.data();
      args.x_stride = problem.stride;
      args.rows = rows;
      args.cols = cols;
      args.dtype = dtype;
      args.w = weights.data() + 1;
      args.y = y.data();
      args.y_stride = problem.outs;
      const test::Quantized q(problem.x, rows, cols, problem.stride);
      args.quantized = &q.rows;
      const test::Bytes b(problem.x, rows, cols, problem.stride);
      if (multiplied_by_bytes(dtype)) args.bytes = &b.rows;
      linear(args, 0, problem.outs, problem.scratch.data());
      EXPECT_EQ(y, expected);
    }
  }
}

}  // namespace
}  // namespace qwench
