#include "backend/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "core/memory.h"
#include "kernels/isa.h"
#include "kernels/unpack.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr int kHidden = 40;
constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 24;
constexpr int kQWidth = kHeads * kHeadDim;
constexpr int kKvWidth = kKvHeads * kHeadDim;

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(generator);
  return values;
}

// A tensor with the memory it views.
struct Tensor {
  Tensor(DType dtype, std::vector<int64_t> shape, const std::vector<float>& values) {
    bytes.resize(bytes_of(dtype, values.size()));
    pack(dtype, values.data(), static_cast<int64_t>(values.size()), bytes.data());
    view = {"test.weight", dtype, std::move(shape), bytes};
  }
  Tensor(DType dtype, int64_t rows, int64_t cols, uint32_t seed)
      : Tensor(dtype, {rows, cols}, random_floats(static_cast<size_t>(rows * cols), seed)) {}

  std::vector<std::byte> bytes;
  TensorView view;
};

// One attention block over a batch of sequences: every operation of Backend that computes.
class Block {
 public:
  struct Sequence {
    int start;
    int rows;
    std::vector<int32_t> blocks;
  };

  explicit Block(int threads)
      : pool_(threads),
        backend_(make_cpu_backend(pool_)),
        table_(backend_->load(table_tensor_.view, DType::bf16)),
        norm_(backend_->load(norm_tensor_.view, DType::f32)),
        q_norm_(backend_->load(q_norm_tensor_.view, DType::f32)),
        q_proj_(backend_->load(q_tensor_.view, DType::bf16)),
        k_proj_(backend_->load(k_tensor_.view, DType::f16)),
        v_proj_(backend_->load(v_tensor_.view, DType::f32)),
        bias_(backend_->load(bias_tensor_.view, DType::f32)),
        o_proj_(backend_->load(o_tensor_.view, DType::f32)),
        cache_(backend_->make_kv_cache(DType::f16, 2, 64, kKvHeads, kHeadDim)) {}

  // The block's output for every row: token ids and rotations depend on the sequence's number and the
  // position.
  std::vector<float> run(const std::vector<Sequence>& sequences, const std::vector<int>& numbers) {
    std::vector<TokenId> tokens;
    std::vector<float> cos;
    std::vector<float> sin;
    std::vector<SequenceRows> rows;
    std::vector<int32_t> logit_rows;
    for (size_t s = 0; s < sequences.size(); ++s) {
      rows.push_back({static_cast<int>(tokens.size()), sequences[s].rows,
                      sequences[s].start + sequences[s].rows, sequences[s].blocks});
      for (int p = sequences[s].start; p < sequences[s].start + sequences[s].rows; ++p) {
        logit_rows.push_back(static_cast<int32_t>(tokens.size()));
        tokens.push_back((p * 7 + numbers[s] * 13) % 50);
        for (int i = 0; i < kHeadDim / 2; ++i) {
          cos.push_back(std::cos(0.1F * static_cast<float>(p * (i + 1))));
          sin.push_back(std::sin(0.1F * static_cast<float>(p * (i + 1))));
        }
      }
    }
    const int count = static_cast<int>(tokens.size());
    const auto matrix = [&](int cols) {
      auto m = backend_->allocate(count, cols);
      m->rows = count;
      return m;
    };
    auto hidden = matrix(kHidden);
    auto normed = matrix(kHidden);
    auto q = matrix(kQWidth);
    auto k = matrix(kKvWidth);
    auto v = matrix(kKvWidth);
    auto mixed = matrix(kQWidth);
    auto delta = matrix(kHidden);
    const Batch batch{tokens, cos, sin, rows, logit_rows};
    backend_->begin(batch);
    backend_->embed(*table_, *hidden);
    backend_->rms_norm(*hidden, *norm_, 1e-6F, *normed);
    const Linear linears[] = {
        {q_proj_.get(), nullptr}, {k_proj_.get(), bias_.get()}, {v_proj_.get(), nullptr}};
    Matrix* const outs[] = {q.get(), k.get(), v.get()};
    backend_->linear(*normed, linears, outs);
    backend_->rope(*q, q_norm_.get(), 1e-6F, kHeadDim, RopePairing::halves);
    backend_->rope(*k, nullptr, 1e-6F, kHeadDim, RopePairing::interleaved);
    backend_->store_kv(*cache_, 1, *k, *v);
    backend_->attention(*cache_, 1, *q, 70, *mixed);
    const Linear o[] = {{o_proj_.get(), nullptr}};
    Matrix* const o_outs[] = {delta.get()};
    backend_->linear(*mixed, o, o_outs);
    backend_->silu_mul(*delta, *normed);
    backend_->add(*hidden, *delta);
    backend_->gather_rows(*hidden, *normed);
    std::vector<float> result(static_cast<size_t>(count) * kHidden);
    for (int r = 0; r < count; ++r) {
      backend_->read_row(*normed, r, std::span(result).subspan(static_cast<size_t>(r) * kHidden, kHidden));
    }
    return result;
  }

 private:
  ThreadPool pool_;
  std::unique_ptr<Backend> backend_;
  Tensor table_tensor_{DType::bf16, 50, kHidden, 1};
  Tensor norm_tensor_{DType::bf16, {kHidden}, random_floats(kHidden, 2)};
  Tensor q_norm_tensor_{DType::f32, {kHeadDim}, random_floats(kHeadDim, 3)};
  Tensor q_tensor_{DType::bf16, kQWidth, kHidden, 4};
  Tensor k_tensor_{DType::f16, kKvWidth, kHidden, 5};
  Tensor v_tensor_{DType::f32, kKvWidth, kHidden, 6};
  Tensor bias_tensor_{DType::f32, {kKvWidth}, random_floats(kKvWidth, 7)};
  Tensor o_tensor_{DType::f32, kHidden, kQWidth, 8};
  std::unique_ptr<Weight> table_, norm_, q_norm_, q_proj_, k_proj_, v_proj_, bias_, o_proj_;
  std::unique_ptr<KvCache> cache_;
};

std::vector<float> rows_of(const std::vector<float>& all, int first, int count) {
  return {all.begin() + std::ptrdiff_t{first} * kHidden,
          all.begin() + std::ptrdiff_t{first + count} * kHidden};
}

TEST(CpuBackend, ARowDoesNotDependOnItsBatchItsChunkOrTheThreads) {
  for (const std::string& isa : available_isas()) {
    SCOPED_TRACE(isa);
    set_isa(isa);
    Block reference(1);
    const std::vector<float> a = reference.run({{0, 100, {3, 9, 1, 0, 12, 5, 6}}}, {1});
    const std::vector<float> b = reference.run({{0, 35, {20, 21, 40}}}, {2});
    ASSERT_FALSE(std::isnan(a.back()));
    for (int threads = 1; threads <= 4; ++threads) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      Block block(threads);
      const std::vector<float> both =
          block.run({{0, 35, {50, 51, 2}}, {0, 100, {60, 10, 30, 31, 32, 33, 34}}}, {2, 1});
      EXPECT_EQ(rows_of(both, 0, 35), b);
      EXPECT_EQ(rows_of(both, 35, 100), a);
      // Token by token, beside a sequence that is prefilled in two chunks.
      for (int p = 0; p < 100; ++p) {
        if (p != 10 && p != 11) {
          ASSERT_EQ(block.run({{p, 1, {7, 8, 9, 10, 11, 12, 13}}}, {1}), rows_of(a, p, 1))
              << "position " << p;
          continue;
        }
        const int start = p == 10 ? 0 : 20;
        const int rows = p == 10 ? 20 : 15;
        const std::vector<float> mixed =
            block.run({{start, rows, {14, 15, 16}}, {p, 1, {7, 8, 9, 10, 11, 12, 13}}}, {2, 1});
        ASSERT_EQ(rows_of(mixed, 0, rows), rows_of(b, start, rows));
        ASSERT_EQ(rows_of(mixed, rows, 1), rows_of(a, p, 1));
      }
    }
    set_isa("");
  }
}

TEST(CpuBackend, LinearSharesTheColumnsOfAllItsOutputs) {
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    const auto backend = make_cpu_backend(pool);
    const std::vector<int64_t> sizes{5, 130, 1, 29};
    auto x = backend->allocate(3, 33);
    x->rows = 3;
    const Tensor table(DType::f32, 3, 33, 1);
    const auto table_weight = backend->load(table.view, DType::f32);
    const std::vector<TokenId> tokens{2, 0, 1};
    const Batch batch{tokens, {}, {}, {}, {}};
    backend->begin(batch);
    backend->embed(*table_weight, *x);
    std::vector<Tensor> tensors;
    for (const int64_t size : sizes) tensors.emplace_back(DType::f16, size, 33, static_cast<uint32_t>(size));
    std::vector<std::unique_ptr<Weight>> weights;
    std::vector<std::unique_ptr<Matrix>> outs;
    std::vector<Linear> linears;
    std::vector<Matrix*> pointers;
    for (const Tensor& tensor : tensors) {
      weights.push_back(backend->load(tensor.view, DType::f16));
      outs.push_back(backend->allocate(3, static_cast<int>(tensor.view.rows())));
      outs.back()->rows = 3;
      linears.push_back({weights.back().get(), nullptr});
      pointers.push_back(outs.back().get());
    }
    backend->linear(*x, linears, pointers);
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<float> w(static_cast<size_t>(sizes[i]) * 33);
      unpack_reference(DType::f16, tensors[i].bytes.data(), 0, static_cast<int64_t>(w.size()), w.data());
      std::vector<float> row(static_cast<size_t>(sizes[i]));
      for (int r = 0; r < 3; ++r) {
        backend->read_row(*outs[i], r, row);
        for (size_t n = 0; n < row.size(); ++n) {
          double sum = 0;
          for (size_t k = 0; k < 33; ++k) {
            float value = 0;
            std::memcpy(
                &value,
                table.bytes.data() + (static_cast<size_t>(tokens[static_cast<size_t>(r)]) * 33 + k) * 4, 4);
            sum += double{value} * w[n * 33 + k];
          }
          ASSERT_NEAR(row[n], sum, 2e-5) << "output " << i << ", row " << r << ", column " << n;
        }
      }
    }
  }
}

TEST(CpuBackend, LoadKeepsTheNumbersAsTheTypeThatIsAskedFor) {
  ThreadPool pool(2);
  const auto backend = make_cpu_backend(pool);
  const std::vector<float> values = random_floats(6 * 2100, 4);
  const std::vector<TokenId> tokens{0, 1, 2, 3, 4, 5};
  const Batch batch{tokens, {}, {}, {}, {}};
  backend->begin(batch);
  for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor tensor(from, {6, 2100}, values);
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      const auto weight = backend->load(tensor.view, to);
      EXPECT_EQ(weight->dtype, to);
      EXPECT_EQ(weight->rows, 6);
      EXPECT_EQ(weight->cols, 2100);
      EXPECT_FALSE(weight->in_place);
      auto out = backend->allocate(6, 2100);
      out->rows = 6;
      backend->embed(*weight, *out);
      // A table stays where it is, unless it is converted.
      const auto table = backend->load_table(tensor.view, to);
      EXPECT_EQ(table->in_place, from == to);
      auto from_table = backend->allocate(6, 2100);
      from_table->rows = 6;
      backend->embed(*table, *from_table);
      std::vector<float> expected(values.size());
      unpack_reference(from, tensor.bytes.data(), 0, 6 * 2100, expected.data());
      std::vector<std::byte> packed(bytes_of(to, expected.size()));
      pack(to, expected.data(), 6 * 2100, packed.data());
      unpack_reference(to, packed.data(), 0, 6 * 2100, expected.data());
      std::vector<float> row(2100);
      for (int r = 0; r < 6; ++r) {
        backend->read_row(*out, r, row);
        ASSERT_EQ(std::memcmp(row.data(), expected.data() + r * 2100, 2100 * 4), 0);
        backend->read_row(*from_table, r, row);
        ASSERT_EQ(std::memcmp(row.data(), expected.data() + r * 2100, 2100 * 4), 0);
      }
    }
  }
}

TEST(CpuBackend, WeightsPackedAsBf16pAnswerAsBf16BitForBit) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto plain = make_cpu_backend(pool);
    const auto packing = make_cpu_backend(pool, {.packed_bf16 = true});
    for (const DType from : {DType::bf16, DType::f32}) {
      std::vector<float> values = random_floats(100 * 256, 5);
      for (size_t i = 0; i < values.size(); i += 3) values[i] = 0;
      for (size_t i = 0; i < values.size(); i += 500) values[i] *= 1e-20F;
      const Tensor tensor(from, {100, 256}, values);
      const std::vector<TokenId> tokens{99, 0, 17, 16};
      const Batch batch{tokens, {}, {}, {}, {}};
      std::vector<std::vector<float>> rows;
      for (Backend* backend : {plain.get(), packing.get()}) {
        const auto weight = backend->load(tensor.view, DType::bf16);
        EXPECT_EQ(weight->stored_bytes > 0, backend == packing.get());
        EXPECT_LT(weight->stored_bytes, 0.9 * 100 * 256 * 2);
        backend->begin(batch);
        auto x = backend->allocate(4, 256);
        auto y = backend->allocate(4, 100);
        x->rows = y->rows = 4;
        backend->embed(*weight, *x);
        backend->linear(*x, std::array{Linear{weight.get(), nullptr}}, std::array{y.get()});
        for (int r = 0; r < 4; ++r) {
          rows.emplace_back(256);
          backend->read_row(*x, r, rows.back());
          rows.emplace_back(100);
          backend->read_row(*y, r, rows.back());
        }
      }
      for (size_t i = 0; i < 8; ++i) EXPECT_EQ(rows[i], rows[i + 8]) << i;
    }
  }
}

TEST(CpuBackend, WeightsThatArePackedLaterGiveTheSameBitsBeforeAndAfter) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    ThreadPool pool(2);
    const auto at_load = make_cpu_backend(pool);
    const auto later = make_cpu_backend(pool, {.pack_later = true});
    std::vector<Tensor> tensors;
    for (uint32_t i = 0; i < 40; ++i) tensors.emplace_back(dtype, 35, 70, i);
    const std::vector<TokenId> tokens{34, 0, 17};
    const Batch batch{tokens, {}, {}, {}, {}};
    const auto load_all = [&](Backend& backend) {
      std::vector<std::unique_ptr<Weight>> weights;
      for (const Tensor& tensor : tensors) weights.push_back(backend.load(tensor.view, dtype));
      return weights;
    };
    const auto answers = [&](Backend& backend, const std::vector<std::unique_ptr<Weight>>& weights) {
      std::vector<std::vector<float>> rows;
      backend.begin(batch);
      auto x = backend.allocate(3, 70);
      auto y = backend.allocate(3, 35);
      x->rows = y->rows = 3;
      for (const auto& weight : weights) {
        backend.embed(*weight, *x);
        backend.linear(*x, std::array{Linear{weight.get(), nullptr}}, std::array{y.get()});
        for (int r = 0; r < 3; ++r) {
          rows.emplace_back(70);
          backend.read_row(*x, r, rows.back());
          rows.emplace_back(35);
          backend.read_row(*y, r, rows.back());
        }
      }
      backend.begin_logits(batch);
      return rows;
    };
    const auto expected = answers(*at_load, load_all(*at_load));
    const auto weights = load_all(*later);
    std::vector<int64_t> in_file;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(answers(*later, weights), expected) << "batch " << i;
      in_file.push_back(
          std::count_if(weights.begin(), weights.end(), [](const auto& w) { return w->in_place; }));
    }
    EXPECT_EQ(in_file[0], 40) << "the first batch has its logits before anything is packed";
    EXPECT_EQ(in_file[1], 0);
  }
}

TEST(CpuBackend, WeightsOfAnyExponentAreNotPacked) {
  ThreadPool pool(2);
  const auto backend = make_cpu_backend(pool, {.packed_bf16 = true});
  std::vector<float> values = random_floats(64 * 256, 6);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], static_cast<int>(i % 97) - 48);
  const Tensor tensor(DType::bf16, {64, 256}, values);
  EXPECT_EQ(backend->load(tensor.view, DType::bf16)->stored_bytes, 0U);
}

TEST(CpuBackend, LoadConvertsQuantizedWeightsAndRefusesTypesThatItCannotMake) {
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  std::vector<std::byte> bytes(2 * 34);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const TensorView view{"blk.0.w", DType::q8_0, {2, 32}, bytes};
  EXPECT_EQ(backend->load(view, DType::q8_0)->dtype, DType::q8_0);
  EXPECT_EQ(backend->load(view, DType::bf16)->dtype, DType::bf16);
  EXPECT_EQ(backend->load(view, DType::q4_0)->dtype, DType::q4_0);
  for (const DType other : {DType::q5_0, DType::q6_k, DType::q4_k}) {  // a row of 32 is no block of q4_k
    try {
      backend->load(view, other);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), testing::HasSubstr("blk.0.w"));
    }
  }
}

TEST(CpuBackend, ATensorWhoseBytesDoNotFitItsShapeIsRefused) {
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  const std::vector<std::byte> bytes(64);
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{4, 5}, {0, 16}, {-1, 16}, {int64_t{1} << 62, 1 << 10}}) {
    try {
      backend->load({"w", DType::f32, shape, bytes}, DType::f32);
      ADD_FAILURE() << "no error";
    } catch (const Error&) {
    }
  }
  EXPECT_THROW(backend->load({"w", DType::q8_0, {1, 33}, bytes}, DType::f32), Error);
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::io;
}

TEST(CpuBackend, ACacheTakesMemoryOnlyWhereItIsWritten) {
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  const uint64_t before = peak_memory();
  const auto cache = backend->make_kv_cache(DType::f16, 32, 65536, 8, 128);  // 137 GB
  EXPECT_EQ(cache->blocks, 65536);
  EXPECT_LT(peak_memory() - before, uint64_t{64} << 20);
}

TEST(CpuBackend, ImpossibleRequestsAreErrors) {
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(kind_of([&] { backend->make_kv_cache(DType::f32, most, most, most, most); }),
            ErrorKind::out_of_memory);
  EXPECT_EQ(kind_of([&] { backend->make_kv_cache(DType::f32, 1, most, most, 1); }), ErrorKind::out_of_memory);
  EXPECT_EQ(kind_of([&] { backend->make_kv_cache(DType::q8_0, 1, 1, 1, 24); }), ErrorKind::unsupported);
  EXPECT_EQ(kind_of([&] { backend->make_kv_cache(DType::q4_0, 1, 1, 1, 32); }), ErrorKind::unsupported);
  EXPECT_EQ(kind_of([&] { backend->make_kv_cache(DType::f16, 0, 1, 1, 32); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { backend->allocate(-1, 4); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { backend->allocate(most, most); }), ErrorKind::out_of_memory);
}

// Positions beyond one part of attention: with one thread a kv head's parts are computed in turn, with more
// the threads share them.
TEST(CpuBackend, ALongSequenceIsTheSameWhetherThreadsShareItsKeysOrNot) {
  constexpr int kContext = 2500;
  const Tensor table(DType::f32, 50, kQWidth, 5);
  const auto attend = [&](int threads, int rows, DType cell) {
    ThreadPool pool(threads);
    const auto backend = make_cpu_backend(pool);
    const auto cache = backend->make_kv_cache(cell, 1, kContext / kBlockSize + 1, kKvHeads, kHeadDim);
    const auto weight = backend->load(table.view, DType::f32);
    const auto narrow = backend->load(
        {"test.weight", DType::f32, {50 * kQWidth / kKvWidth, kKvWidth}, table.bytes}, DType::f32);
    std::vector<int32_t> blocks(kContext / kBlockSize + 1);
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int32_t>(i * 11 % blocks.size());
    std::vector<TokenId> tokens(kContext);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * i % 50);
    auto k = backend->allocate(kContext, kKvWidth);
    k->rows = kContext;
    const std::vector<SequenceRows> all{{0, kContext, kContext, blocks}};
    const Batch store{tokens, {}, {}, all, {}};
    backend->begin(store);
    backend->embed(*narrow, *k);
    backend->store_kv(*cache, 0, *k, *k);
    auto q = backend->allocate(rows, kQWidth);
    auto out = backend->allocate(rows, kQWidth);
    q->rows = out->rows = rows;
    const std::vector<SequenceRows> last{{0, rows, kContext, blocks}};
    const Batch batch{std::span(tokens).last(static_cast<size_t>(rows)), {}, {}, last, {}};
    backend->begin(batch);
    backend->embed(*weight, *q);
    backend->attention(*cache, 0, *q, 0, *out);
    std::vector<float> row(kQWidth);
    backend->read_row(*out, rows - 1, row);
    return row;
  };
  for (const DType cell : {DType::f16, DType::f32}) {
    const std::vector<float> expected = attend(1, 1, cell);
    for (const int threads : {2, 3, 5})
      EXPECT_EQ(attend(threads, 1, cell), expected) << threads << " threads";
    EXPECT_EQ(attend(3, 20, cell), expected);
    EXPECT_EQ(attend(2, 300, cell), expected);
  }
}

TEST(CpuBackend, CopyBlockCopiesAllLayers) {
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  const auto cache = backend->make_kv_cache(DType::f32, 3, 4, 1, 8);
  auto k = backend->allocate(16, 8);
  auto v = backend->allocate(16, 8);
  auto q = backend->allocate(16, 8);
  auto out = backend->allocate(16, 8);
  for (auto* m : {k.get(), v.get(), q.get(), out.get()}) m->rows = 16;
  const Tensor table(DType::f32, 16, 8, 5);
  const auto weight = backend->load(table.view, DType::f32);
  std::vector<TokenId> tokens(16);
  for (int i = 0; i < 16; ++i) tokens[static_cast<size_t>(i)] = i;
  const auto attend = [&](int32_t block, int layer, bool store) {
    const std::vector<int32_t> blocks{block};
    const std::vector<SequenceRows> rows{{0, 16, 16, blocks}};
    const Batch batch{tokens, {}, {}, rows, {}};
    backend->begin(batch);
    for (auto* m : {k.get(), v.get(), q.get()}) backend->embed(*weight, *m);
    if (store) backend->store_kv(*cache, layer, *k, *v);
    backend->attention(*cache, layer, *q, 0, *out);
    std::vector<float> row(8);
    backend->read_row(*out, 15, row);
    return row;
  };
  std::vector<std::vector<float>> expected;
  for (int layer = 0; layer < 3; ++layer) expected.push_back(attend(2, layer, true));
  EXPECT_NE(attend(0, 0, false), expected[0]);
  backend->copy_block(*cache, 2, 0);
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(attend(0, layer, false), expected[static_cast<size_t>(layer)]) << "layer " << layer;
  }
}

/// A matrix of three rows of five, one with values that are not finite.
struct ThreeRows {
  ThreeRows() {
    backend->begin(batch);
    x->rows = 3;
    backend->embed(*weight, *x);
  }

  ThreadPool pool{2};
  std::unique_ptr<Backend> backend = make_cpu_backend(pool);
  Tensor table{DType::f32, {3, 5}, {1, 5, 5, 9, 9, 1, 2, 3, 4, NAN, 0, INFINITY, 0, 0, 0}};
  std::unique_ptr<Weight> weight = backend->load(table.view, DType::f32);
  std::vector<TokenId> tokens{0, 1, 2};
  Batch batch{tokens, {}, {}, {}, {}};
  std::unique_ptr<Matrix> x = backend->allocate(3, 5);
};

TEST(CpuBackend, ArgMaxLooksAtTheValidColumnsOnly) {
  ThreeRows rows;
  std::vector<TokenId> ids(3);
  rows.backend->argmax(*rows.x, 3, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, -1}));
  rows.backend->argmax(*rows.x, 5, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{3, -1, -1}));
}

TEST(CpuBackend, TopKLooksAtTheValidColumnsOnly) {
  ThreeRows rows;
  std::vector<TokenId> ids(6);
  std::vector<float> values(6);
  rows.backend->top_k(*rows.x, 4, 2, ids, values);
  EXPECT_EQ(std::vector(ids.begin(), ids.begin() + 4), (std::vector<TokenId>{3, 1, 3, 2}));
  EXPECT_EQ(std::vector(values.begin(), values.begin() + 4), (std::vector<float>{9, 5, 4, 3}));
  EXPECT_EQ(ids[4], -1);
}

TEST(CpuBackend, DescribesItself) {
  ThreadPool pool(2);
  const std::string text = make_cpu_backend(pool)->description();
  EXPECT_THAT(text, testing::StartsWith("CPU ("));
}

}  // namespace
}  // namespace qwench
