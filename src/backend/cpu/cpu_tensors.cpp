#include "backend/cpu/cpu_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/kv_cells.h"
#include "kernels/quantize.h"
#include "kernels/unpack.h"
#include "qwench/error.h"

namespace qwench {

static_assert(kBlockSize == kKvBlock);

CpuMatrix::CpuMatrix(int row_capacity, int col_count) {
  if (row_capacity < 0 || col_count < 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a matrix of {} rows and {} columns was asked for", row_capacity, col_count));
  }
  rows = 0;
  cols = col_count;
  capacity = row_capacity;
  stride = (int64_t{cols} + 15) / 16 * 16;
  const uint64_t bytes =
      checked_product(static_cast<uint64_t>(capacity), static_cast<uint64_t>(stride) * sizeof(float),
                      "a buffer of activations");
  memory_ = CpuMemory(bytes, "activations");
}

CpuWeight::CpuWeight(const TensorView& tensor, DType kept_as, ThreadPool& pool) {
  rows = tensor.rows();
  cols = tensor.cols();
  const DTypeTraits& t = traits(tensor.dtype);
  if (rows < 1 || cols < 1 || cols % t.block_size != 0 ||
      checked_product(checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols / t.block_size),
                                      "the tensor " + tensor.name),
                      static_cast<uint64_t>(t.block_bytes),
                      "the tensor " + tensor.name) != tensor.bytes.size()) {
    throw Error(ErrorKind::malformed,
                fmt::format("the tensor {} has {} bytes, which do not make {} rows of {} {} numbers",
                            tensor.name, tensor.bytes.size(), rows, cols, t.name));
  }
  dtype = rows == 1 ? DType::f32 : kept_as;
  if (dtype == tensor.dtype && rows > 1) {
    data_ = tensor.bytes.data();
    return;
  }
  if (is_quantized(dtype) && (!can_quantize(dtype) || cols % traits(dtype).block_size != 0)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the tensor {} is stored as {} and cannot be kept as {}; choose f32, "
                            "f16, bf16, its own type, or q8_0, q4_0 or q4_k where the rows are whole blocks",
                            tensor.name, t.name, name(dtype)));
  }
  convert(tensor, pool);
}

void CpuWeight::convert(const TensorView& tensor, ThreadPool& pool) {
  const auto source_row = static_cast<int64_t>(bytes_of(tensor.dtype, static_cast<uint64_t>(cols)));
  const auto row = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  copy_ = CpuMemory(
      checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(row), "the tensor " + tensor.name),
      "the weights, converted to " + std::string(name(dtype)));
  data_ = copy_.data();
  // Through a buffer that holds whole blocks of every type.
  constexpr int64_t kPiece = 1024;
  pool.parallel_for(rows, 1, [&](int64_t begin, int64_t end, int) {
    std::array<float, kPiece> buffer;
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < cols; c += kPiece) {
        const int64_t n = std::min(kPiece, cols - c);
        unpack(tensor.dtype, tensor.bytes.data() + r * source_row, c, n, buffer.data());
        std::byte* to = copy_.data() + r * row + c / traits(dtype).block_size * traits(dtype).block_bytes;
        if (is_quantized(dtype)) {
          quantize(dtype, buffer.data(), n, to);
        } else {
          pack(dtype, buffer.data(), n, to);
        }
      }
    }
  });
}

CpuKvCache::CpuKvCache(DType cell, int layer_count, int block_count, int kv_head_count, int head_size) {
  if (layer_count < 1 || block_count < 1 || kv_head_count < 1 || head_size < 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a key-value cache of {} layers, {} blocks, {} heads of {} was asked for",
                            layer_count, block_count, kv_head_count, head_size));
  }
  check_kv_cells(cell, head_size);
  dtype = cell;
  layers = layer_count;
  blocks = block_count;
  kv_heads = kv_head_count;
  head_dim = head_size;
  const std::string purpose = "the key-value cache";
  head_bytes_ = checked_product(bytes_of(cell, static_cast<uint64_t>(head_size)), kBlockSize, purpose);
  block_bytes_ = checked_product(head_bytes_, static_cast<uint64_t>(kv_heads), purpose);
  layer_bytes_ = checked_product(block_bytes_, static_cast<uint64_t>(blocks), purpose);
  const uint64_t bytes = checked_product(layer_bytes_, static_cast<uint64_t>(layers), purpose);
  keys_ = CpuMemory(bytes, purpose, Pages::small);
  values_ = CpuMemory(bytes, purpose, Pages::small);
}

}  // namespace qwench
