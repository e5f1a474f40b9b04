#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "backend/cpu/cpu_attention.h"
#include "backend/cpu/cpu_tensors.h"
#include "core/mapped_file.h"
#include "kernels/byte_rows.h"
#include "kernels/elementwise.h"
#include "kernels/isa.h"
#include "kernels/linear.h"
#include "kernels/quantized_rows.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/top_k.h"

namespace qwench {
namespace {

// Waking the threads costs about as much as this many simple operations.
constexpr int64_t kWorthSharing = 16384;

// Columns that a thread takes at once: a multiple of every tile's width, or nearly.
constexpr int64_t kColumnGrain = 32;

CpuMatrix& cpu(Matrix& matrix) { return static_cast<CpuMatrix&>(matrix); }
const CpuMatrix& cpu(const Matrix& matrix) { return static_cast<const CpuMatrix&>(matrix); }
const CpuWeight& cpu(const Weight& weight) { return static_cast<const CpuWeight&>(weight); }
CpuKvCache& cpu(KvCache& cache) { return static_cast<CpuKvCache&>(cache); }
const CpuKvCache& cpu(const KvCache& cache) { return static_cast<const CpuKvCache&>(cache); }

// A matrix of one row is kept in a row, as vectors are.
void one_output(const LinearArgs& a) {
  const auto* w = reinterpret_cast<const float*>(a.w);
  for (int64_t r = 0; r < a.rows; ++r) {
    double sum = a.bias == nullptr ? 0.0 : a.bias[0];
    for (int64_t k = 0; k < a.cols; ++k) sum += double{a.x[r * a.x_stride + k]} * w[k];
    a.y[r * a.y_stride] = static_cast<float>(sum);
  }
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(ThreadPool& pool, const CpuOptions& options)
      : pool_(pool),
        layout_(options.packed_bf16  ? CpuLayout::packed_panels
                : options.pack_later ? CpuLayout::panels_later
                                     : CpuLayout::panels) {
    for (int i = 0; i < pool.size(); ++i)
      linear_scratch_.emplace_back(kLinearScratch * sizeof(float), "scratch memory");
  }

  std::string description() const override {
    std::string isa = current_isa();
    for (char& c : isa) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return fmt::format("CPU ({}{})", isa, activation_bits() == 8 ? ", activations of 8 bits" : "");
  }

  std::unique_ptr<Matrix> allocate(int capacity, int cols) override {
    auto matrix = std::make_unique<CpuMatrix>(capacity, cols);
    const uint64_t words = QuantizedRows::bytes(capacity, cols);
    const uint64_t bytes = ByteRows::bytes(capacity, cols);
    if (words > words_.size()) words_ = CpuMemory(words, "quantized activations", Pages::small);
    if (bytes > bytes_.size()) bytes_ = CpuMemory(bytes, "quantized activations", Pages::small);
    return matrix;
  }

  std::unique_ptr<Weight> load(const TensorView& tensor, DType dtype) override {
    auto weight =
        std::make_unique<CpuWeight>(tensor, dtype, layout_, pool_, tensor.rows() == 1 ? vectors_ : weights_);
    if (weight->packs_later()) unpacked_.push_back(weight.get());
    return weight;
  }

  std::unique_ptr<Weight> load_table(const TensorView& tensor, DType dtype) override {
    return std::make_unique<CpuWeight>(tensor, dtype, CpuLayout::rows, pool_, weights_);
  }

  std::unique_ptr<KvCache> make_kv_cache(DType dtype, int layers, int blocks, int kv_heads,
                                         int head_dim) override {
    auto cache = std::make_unique<CpuKvCache>(dtype, layers, blocks, kv_heads, head_dim);
    attention_.reserve(pool_.size(), head_dim);
    return cache;
  }

  void begin(const Batch& batch) override {
    if (batch_ != nullptr && !unpacked_.empty()) pack_all();
    batch_ = &batch;
  }
  void begin_logits(const Batch& batch) override { batch_ = &batch; }

  void embed(const Weight& table, Matrix& out) override {
    for_rows(out,
             [&](int r) { cpu(table).read_row(batch_->tokens[static_cast<size_t>(r)], cpu(out).row(r)); });
  }

  void rms_norm(const Matrix& x, const Weight& weight, float eps, Matrix& out) override {
    for_rows(x, [&](int r) {
      qwench::rms_norm(cpu(x).row(r), cpu(weight).floats(), eps, x.cols, cpu(out).row(r));
    });
  }

  void linear(const Matrix& x, std::span<const Linear> linears, std::span<Matrix* const> outs) override;
  void rope(Matrix& x, const Weight* norm, float eps, int head_dim, RopePairing pairing) override;
  void store_kv(KvCache& cache, int layer, const Matrix& k, const Matrix& v) override;
  void attention(const KvCache& cache, int layer, const Matrix& q, int window, Matrix& out) override;

  void silu_mul(Matrix& gate, const Matrix& up) override {
    for_rows(gate, [&](int r) { qwench::silu_mul(cpu(gate).row(r), cpu(up).row(r), gate.cols); });
  }

  void add(Matrix& x, const Matrix& y) override {
    for_rows(x, [&](int r) { qwench::add(cpu(x).row(r), cpu(y).row(r), x.cols); });
  }

  void gather_rows(const Matrix& x, Matrix& out) override {
    for (size_t i = 0; i < batch_->logit_rows.size(); ++i) {
      std::copy_n(cpu(x).row(batch_->logit_rows[i]), x.cols, cpu(out).row(static_cast<int64_t>(i)));
    }
  }

  void argmax(const Matrix& x, int valid_cols, std::span<TokenId> ids) override {
    for_rows(x, [&](int r) { ids[static_cast<size_t>(r)] = qwench::argmax(cpu(x).row(r), valid_cols); });
  }

  void top_k(const Matrix& x, int valid_cols, int k, std::span<TokenId> ids,
             std::span<float> values) override {
    for_rows(x, [&](int r) {
      const auto at = static_cast<size_t>(r) * static_cast<size_t>(k);
      qwench::top_k(cpu(x).row(r), valid_cols, k, ids.data() + at, values.data() + at);
    });
  }

  void read_row(const Matrix& x, int row, std::span<float> out) override {
    std::copy_n(cpu(x).row(row), std::min<size_t>(out.size(), static_cast<size_t>(x.cols)), out.data());
  }

  void copy_block(KvCache& cache, int from, int to) override {
    const CpuKvCache& c = cpu(cache);
    const auto at = [&](std::byte* layer, int block) {
      return layer + static_cast<uint64_t>(block) * c.block_bytes();
    };
    for (int layer = 0; layer < c.layers; ++layer) {
      std::memcpy(at(c.keys(layer), to), at(c.keys(layer), from), c.block_bytes());
      std::memcpy(at(c.values(layer), to), at(c.values(layer), from), c.block_bytes());
    }
  }

 private:
  // f(row) for the rows of `x`, shared among the threads where there is enough to do.
  template <typename F>
  void for_rows(const Matrix& x, F&& f) {
    const int64_t grain = std::max<int64_t>(1, kWorthSharing / x.cols);
    pool_.parallel_for(x.rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) f(static_cast<int>(r));
    });
  }

  // x as `linears` want it.
  struct Quantized {
    QuantizedRows words;
    ByteRows bytes;
  };
  Quantized quantize(const Matrix& x, std::span<const Linear> linears);
  void pack_all();

  ThreadPool& pool_;
  const CpuLayout layout_;
  CpuArena weights_{Pages::large};
  // Apart: written to at once, each would bring in a huge page of matrices that are packed later.
  CpuArena vectors_{Pages::small};
  std::vector<CpuWeight*> unpacked_;  // until the second batch
  const Batch* batch_ = nullptr;
  CpuMemory words_;  // one matrix at a time; resident only as far as quantized weights are used
  CpuMemory bytes_;
  std::vector<CpuMemory> linear_scratch_;  // [threads]
  CpuAttention attention_;
};

void CpuBackend::pack_all() {
  std::vector<std::span<const std::byte>> in_file;
  for (CpuWeight* weight : unpacked_) in_file.push_back(weight->pack_now(pool_));
  for (const std::span<const std::byte> bytes : in_file) release(bytes);  // reading brings neighbours back
  unpacked_.clear();
}

CpuBackend::Quantized CpuBackend::quantize(const Matrix& x, std::span<const Linear> linears) {
  bool as_words = false;
  bool as_bytes = false;
  for (const Linear& l : linears) {
    if (!is_quantized(l.weight->dtype)) continue;
    (multiplied_by_bytes(l.weight->dtype) ? as_bytes : as_words) = true;
  }
  Quantized q;
  if (as_words) q.words = QuantizedRows::in(words_.data(), x.rows, x.cols);
  if (as_bytes) q.bytes = ByteRows::in(bytes_.data(), x.rows, x.cols);
  if (as_words || as_bytes) {
    for_rows(x, [&](int r) {
      if (as_words) quantize_row(cpu(x).row(r), x.cols, r, q.words);
      if (as_bytes) quantize_row_to_bytes(cpu(x).row(r), x.cols, r, q.bytes);
    });
  }
  return q;
}

void CpuBackend::linear(const Matrix& x, std::span<const Linear> linears, std::span<Matrix* const> outs) {
  const Quantized quantized = quantize(x, linears);
  // The columns of all outputs, one after the other, are one range that the threads share.
  int64_t columns = 0;
  for (const Linear& l : linears) columns += l.weight->rows;
  pool_.parallel_for(columns, kColumnGrain, [&](int64_t begin, int64_t end, int worker) {
    int64_t first = 0;
    for (size_t i = 0; i < linears.size(); ++i) {
      const Weight& weight = *linears[i].weight;
      const int64_t from = std::max(begin - first, int64_t{0});
      const int64_t to = std::min(end - first, weight.rows);
      first += weight.rows;
      if (from >= to) continue;
      LinearArgs args;
      args.x = cpu(x).row(0);
      args.x_stride = cpu(x).stride;
      args.quantized = &quantized.words;
      if (multiplied_by_bytes(weight.dtype)) args.bytes = &quantized.bytes;
      args.rows = x.rows;
      args.cols = weight.cols;
      args.dtype = weight.dtype;
      args.w = cpu(weight).data();
      args.in_rows = cpu(weight).packs_later();
      args.outs = weight.rows;
      args.packed = cpu(weight).packed();
      args.outliers = cpu(weight).outliers();
      args.bias = linears[i].bias == nullptr ? nullptr : cpu(*linears[i].bias).floats();
      args.y = cpu(*outs[i]).row(0);
      args.y_stride = cpu(*outs[i]).stride;
      if (weight.rows == 1) {
        one_output(args);
      } else {
        qwench::linear(args, from, to, linear_scratch_[static_cast<size_t>(worker)].floats());
      }
    }
  });
}

void CpuBackend::rope(Matrix& x, const Weight* norm, float eps, int head_dim, RopePairing pairing) {
  const int half = head_dim / 2;
  for_rows(x, [&](int r) {
    const float* cos = batch_->rope_cos.data() + int64_t{r} * half;
    const float* sin = batch_->rope_sin.data() + int64_t{r} * half;
    float* row = cpu(x).row(r);
    for (float* head = row; head < row + x.cols; head += head_dim) {
      if (norm != nullptr) qwench::rms_norm(head, cpu(*norm).floats(), eps, head_dim, head);
      if (pairing == RopePairing::halves) {
        rope_halves(head, cos, sin, half);
      } else {
        rope_interleaved(head, cos, sin, half);
      }
    }
  });
}

void CpuBackend::store_kv(KvCache& cache, int layer, const Matrix& k, const Matrix& v) {
  const CpuKvCache& c = cpu(cache);
  const auto store = [&](const SequenceRows& sequence, int i) {
    const int position = sequence.context - sequence.rows + i;
    const int block = sequence.block_table[static_cast<size_t>(position / kBlockSize)];
    const float* key = cpu(k).row(sequence.first_row + i);
    const float* value = cpu(v).row(sequence.first_row + i);
    uint64_t at = static_cast<uint64_t>(block) * c.block_bytes();
    for (int head = 0; head < c.kv_heads; ++head, at += c.head_bytes()) {
      const int64_t offset = int64_t{head} * c.head_dim;
      store_key(c.dtype, key + offset, c.head_dim, position % kBlockSize, c.keys(layer) + at);
      store_value(c.dtype, value + offset, c.head_dim, position % kBlockSize, c.values(layer) + at);
    }
  };
  const int64_t grain = std::max<int64_t>(1, kWorthSharing / 8 / k.cols);
  pool_.parallel_for(k.rows, grain, [&](int64_t begin, int64_t end, int) {
    for (const SequenceRows& sequence : batch_->sequences) {
      const int64_t first = std::max<int64_t>(begin - sequence.first_row, 0);
      const int64_t last = std::min<int64_t>(end - sequence.first_row, sequence.rows);
      for (int64_t i = first; i < last; ++i) store(sequence, static_cast<int>(i));
    }
  });
}

void CpuBackend::attention(const KvCache& cache, int layer, const Matrix& q, int window, Matrix& out) {
  const CpuKvCache& c = cpu(cache);
  AttentionArgs args;
  args.q = cpu(q).row(0);
  args.q_stride = cpu(q).stride;
  args.out = cpu(out).row(0);
  args.out_stride = cpu(out).stride;
  args.k = c.keys(layer);
  args.v = c.values(layer);
  args.cell = c.dtype;
  args.heads = q.cols / c.head_dim;
  args.kv_heads = c.kv_heads;
  args.head_dim = c.head_dim;
  args.window = window;
  attention_.run(pool_, args, batch_->sequences);
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool, const CpuOptions& options) {
  set_isa_from_environment();
  set_activation_bits_from_environment();
  return std::make_unique<CpuBackend>(pool, options);
}

}  // namespace qwench
