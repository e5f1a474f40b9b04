#pragma once

#include "backend/backend.h"
#include "backend/cpu/cpu_memory.h"
#include "core/thread_pool.h"
#include "kernels/packed_bf16.h"

namespace qwench {

/// Rows lie `stride` floats apart; the padding behind each row is zero and stays so.
class CpuMatrix final : public Matrix {
 public:
  CpuMatrix(int capacity, int cols);  // throws Error (out_of_memory)

  float* row(int64_t r) const { return memory_.floats() + r * stride; }

  int64_t stride = 0;

 private:
  CpuMemory memory_;
};

/// How a weight lies in memory.
enum class CpuLayout {
  panels,         ///< for products: kernels/plain_panels.h, or kernels/panels.h for quantized types
  packed_panels,  ///< bf16: kernels/packed_bf16.h, unless that saves nothing; others: panels
  rows,           ///< row after row, as in a file: tables of which rows are read, and vectors
  panels_later,   ///< rows that stay in the file until pack_now: matrices that keep a plain type; others:
                  ///< panels
};

/// Matrices are packed into panels; tables stay in the mapped bytes themselves where they keep their type.
/// Vectors ([1, n]: norms and biases) are always f32.
class CpuWeight final : public Weight {
 public:
  /// Throws Error: malformed where the tensor's bytes do not fit its shape, unsupported where `dtype` is a
  /// quantized type that is neither the tensor's own nor one that can_quantize, out_of_memory.
  /// Copies lie in `arena`, which must outlive the weight.
  CpuWeight(const TensorView& tensor, DType kept_as, CpuLayout wanted, ThreadPool& pool, CpuArena& arena);

  const std::byte* data() const { return data_; }
  /// Of a weight that is packed later. Gives back the pages of the file, which it returns.
  std::span<const std::byte> pack_now(ThreadPool& pool);
  bool packs_later() const { return layout_ == CpuLayout::panels_later; }

  /// out[cols], exact.
  void read_row(int64_t row, float* out) const;
  bool packed() const { return layout_ == CpuLayout::packed_panels; }
  const PackedOutlier* outliers() const { return outliers_; }
  /// Of a vector.
  const float* floats() const { return reinterpret_cast<const float*>(copy_); }

 private:
  void convert(const TensorView& tensor, ThreadPool& pool, CpuArena& arena);
  void take_panels(CpuArena& arena);
  void pack_into_panels(const TensorView& tensor, ThreadPool& pool, CpuArena& arena);
  void pack_exactly(const TensorView& tensor, ThreadPool& pool, CpuArena& arena);

  CpuLayout layout_;
  const std::byte* data_ = nullptr;
  std::byte* copy_ = nullptr;
  const PackedOutlier* outliers_ = nullptr;
};

/// Bytes that a CpuWeight of this shape takes in panels, and that a vector takes.
uint64_t kept_bytes(DType dtype, uint64_t rows, uint64_t cols, bool packed_bf16 = false);

class CpuKvCache final : public KvCache {
 public:
  /// Throws Error: unsupported (cell type), invalid_argument, out_of_memory.
  CpuKvCache(DType cell, int layer_count, int block_count, int kv_head_count, int head_size);

  /// [blocks, kv_heads] of one layer, of blocks as kernels/kv_cells.h has them.
  std::byte* keys(int layer) const { return keys_.data() + static_cast<uint64_t>(layer) * layer_bytes_; }
  std::byte* values(int layer) const { return values_.data() + static_cast<uint64_t>(layer) * layer_bytes_; }
  uint64_t head_bytes() const { return head_bytes_; }    ///< one block of one kv head, of the keys alone
  uint64_t block_bytes() const { return block_bytes_; }  ///< one block of one layer, of the keys alone

 private:
  uint64_t head_bytes_ = 0;
  uint64_t block_bytes_ = 0;
  uint64_t layer_bytes_ = 0;
  CpuMemory keys_;
  CpuMemory values_;
};

}  // namespace qwench
