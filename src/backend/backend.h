#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/tensor_view.h"
#include "qwench/dtype.h"
#include "qwench/sampling.h"

namespace qwench {

/// Positions in one block of the paged KV cache.
inline constexpr int kBlockSize = 16;

/// How many elements Backend::top_k gives at most: more than samplers are commonly set to keep (20 to 100),
/// and few enough for one work group of a device to rank what it must look at in 16 KB.
inline constexpr int kMostTop = 128;

/// One sequence's part of a batch.
struct SequenceRows {
  int first_row;  // its rows of the batch are [first_row, first_row + rows)
  int rows;       // they hold the positions [context - rows, context)
  int context;    // positions in the cache once these rows are stored
  std::span<const int32_t>
      block_table;  // [ceil(context / kBlockSize)]: position p lies in block_table[p / kBlockSize]
};

/// What one forward pass computes: a flat list of tokens of many sequences, prefill chunks and single decode
/// steps alike ("varlen").
struct Batch {
  std::span<const TokenId> tokens;          // [tokens]
  std::span<const float> rope_cos;          // [tokens, head_dim / 2]
  std::span<const float> rope_sin;          // [tokens, head_dim / 2]
  std::span<const SequenceRows> sequences;  // in row order, covering all rows
  std::span<const int32_t> logit_rows;      // rows whose logits are wanted, ascending
};

/// f32 activations [rows, cols] in the backend's memory. `rows` changes with the batch, up to `capacity`.
class Matrix {
 public:
  virtual ~Matrix() = default;
  int rows = 0;
  int cols = 0;
  int capacity = 0;  // rows
};

/// A weight, kept by the backend in the layout it likes. [rows, cols] = [out_features, in_features]; a vector
/// is [1, n].
class Weight {
 public:
  virtual ~Weight() = default;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  uint64_t stored_bytes = 0;  // where other than those of dtype
  bool in_place = false;      // reads the checkpoint's mapped bytes, rather than a copy of its own
};

/// Keys and values of all layers, in blocks of kBlockSize positions; how they lie in a block is the backend's
/// business.
class KvCache {
 public:
  virtual ~KvCache() = default;
  DType dtype = DType::f32;
  int layers = 0;
  int blocks = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

/// y = x · weightᵀ + bias
struct Linear {
  const Weight* weight = nullptr;
  const Weight* bias = nullptr;  // may be null
};

/// Which two elements of a head RoPE rotates together (Su et al. 2021, arXiv:2104.09864).
enum class RopePairing {
  halves,       // (i, i + head_dim / 2): Hugging Face checkpoints
  interleaved,  // (2 i, 2 i + 1): llama-architecture GGUF files, whose q and k rows are permuted for it
};

/// How long an operation took where it was run later than it was called.
struct OperationTime {
  double start = 0;  // seconds since measure(true)
  double seconds = 0;
  bool fused = false;  // computed together with the operation before it, whose time is that of both
};

/// A copy of a layer's weights to a device, while others computed.
struct CopyTime {
  int layer = 0;
  double start = 0;  // seconds since measure(true)
  double seconds = 0;
};

/// What a backend of a device has done so far.
struct DeviceCounts {
  int64_t submits = 0;     // times commands were handed to the device
  int64_t read_backs = 0;  // times results came to the host
  int64_t read_back_bytes = 0;
  int64_t streamed_bytes = 0;  // weights that were copied to the device to be computed with
};

/// What a device can do at best, measured.
struct DeviceSpeed {
  double read_gb_per_s = 0;    // of its own memory, by a shader
  double copy_gb_per_s = 0;    // within its own memory: bytes read and written
  double f32_gflop_per_s = 0;  // fused multiply-adds, each two operations
};

/// Owns memory and runs the operations of the decoder on it. Used by one thread at a time. Operations
/// allocate nothing in the long run; allocate, load and make_kv_cache throw Error (out_of_memory,
/// unsupported). On the CPU an operation is done when the call returns, and throws nothing. Backends of
/// devices collect operations and run them together when results are read (argmax, top_k, read_row) or the
/// next batch begins: these calls throw Error (device_lost, out_of_memory).
///
/// Batch invariance: each output element is reduced in an order that depends on its own row alone: not on the
/// number of rows, on the other sequences, on how a prompt is cut into chunks, or on the number of threads.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string description() const = 0;  // "CPU (AVX2)"

  virtual std::unique_ptr<Matrix> allocate(int capacity, int cols) = 0;
  /// Keeps `tensor` as `dtype`, which is its own, a plain type, or one that can_quantize. Where it is its
  /// own, the backend may use the mapped bytes in place (Weight::in_place): the checkpoint must outlive the
  /// backend.
  virtual std::unique_ptr<Weight> load(const TensorView& tensor, DType dtype) = 0;
  /// The same for a table of which `embed` alone reads rows: no linear may use it.
  virtual std::unique_ptr<Weight> load_table(const TensorView& tensor, DType dtype) {
    return load(tensor, dtype);
  }
  /// Memory is reserved here and takes room only as blocks are written.
  virtual std::unique_ptr<KvCache> make_kv_cache(DType dtype, int layers, int blocks, int kv_heads,
                                                 int head_dim) = 0;

  /// The operations up to the next call are on this batch, which must stay in place.
  virtual void begin(const Batch& batch) = 0;
  /// The same batch once more, of which logit_rows alone are others.
  virtual void begin_logits(const Batch& batch) { begin(batch); }

  virtual void embed(const Weight& table, Matrix& out) = 0;  // out [tokens, hidden]
  virtual void rms_norm(const Matrix& x, const Weight& weight, float eps, Matrix& out) = 0;
  /// outs[i] = linears[i](x). One call for several that share x.
  virtual void linear(const Matrix& x, std::span<const Linear> linears, std::span<Matrix* const> outs) = 0;
  /// rms_norm of each head where `norm` is given (QK-norm), then rotation, in place. x [tokens, heads *
  /// head_dim].
  virtual void rope(Matrix& x, const Weight* norm, float eps, int head_dim, RopePairing pairing) = 0;
  virtual void store_kv(KvCache& cache, int layer, const Matrix& k, const Matrix& v) = 0;
  /// Causal attention of every row over its own sequence in the cache: softmax(q kᵀ / sqrt(head_dim)) v. A
  /// row at position p sees the positions (p - window, p]; window 0 is all. out [tokens, heads * head_dim].
  virtual void attention(const KvCache& cache, int layer, const Matrix& q, int window, Matrix& out) = 0;
  virtual void silu_mul(Matrix& gate, const Matrix& up) = 0;   // gate = silu(gate) * up
  virtual void add(Matrix& x, const Matrix& y) = 0;            // x += y
  virtual void gather_rows(const Matrix& x, Matrix& out) = 0;  // out = x[batch.logit_rows]

  /// The largest element of each row of the first `valid_cols` columns, the first of equals; -1 where the row
  /// holds a value that is not finite.
  virtual void argmax(const Matrix& x, int valid_cols, std::span<TokenId> ids) = 0;
  /// The k largest elements of each row of the first `valid_cols` columns, largest first and equals by their
  /// index, into ids and values [rows, k]; zeros of either sign are equal, and may come as either.
  /// 1 <= k <= min(valid_cols, kMostTop). A row that holds a value that is not finite has -1 as its first id,
  /// and nothing is said of its others.
  virtual void top_k(const Matrix& x, int valid_cols, int k, std::span<TokenId> ids,
                     std::span<float> values) = 0;
  virtual void read_row(const Matrix& x, int row, std::span<float> out) = 0;  // to the host
  virtual void copy_block(KvCache& cache, int from, int to) = 0;              // all layers (copy on write)

  /// Whether rows lie in another memory than the host's: top_k then saves the way, where argmax or a few
  /// elements are all that is wanted of a row.
  virtual bool rows_are_away() const { return false; }

  /// Between measure(true) and measure(false), backends of devices time what they run: measured() is in the
  /// order of calls, empty for the CPU, whose operations take the time of their calls.
  virtual void measure(bool) {}
  virtual std::span<const OperationTime> measured() { return {}; }
  virtual std::span<const CopyTime> measured_copies() { return {}; }
  virtual DeviceCounts counts() const { return {}; }
  /// Takes a second or two. Empty for the CPU (kernels/machine_limits.h). Throws Error.
  virtual std::optional<DeviceSpeed> measure_speed() { return std::nullopt; }
};

}  // namespace qwench
