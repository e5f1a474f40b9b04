#include "backend/cpu/cpu_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/kv_cells.h"
#include "kernels/panels.h"
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

CpuWeight::CpuWeight(const TensorView& tensor, DType kept_as, ThreadPool& pool, CpuArena& arena) {
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
  if (dtype == tensor.dtype && rows > 1 && !is_quantized(dtype)) {
    data_ = tensor.bytes.data();
    in_place = true;
    return;
  }
  if (is_quantized(dtype) && dtype != tensor.dtype &&
      (!can_quantize(dtype) || cols % traits(dtype).block_size != 0)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the tensor {} is stored as {} and cannot be kept as {}; choose f32, "
                            "f16, bf16, its own type, or q8_0, q4_0 or q4_k where the rows are whole blocks",
                            tensor.name, t.name, name(dtype)));
  }
  if (is_quantized(dtype)) {
    pack_into_panels(tensor, pool, arena);
  } else {
    convert(tensor, pool, arena);
  }
}

namespace {

// Numbers that are converted at a time: whole blocks of every type.
constexpr int64_t kPiece = 1024;

// Row r of a tensor as `dtype`, at `to`.
void convert_row(const TensorView& tensor, int64_t r, DType dtype, std::byte* to) {
  const int64_t cols = tensor.cols();
  const auto source_row = static_cast<int64_t>(bytes_of(tensor.dtype, static_cast<uint64_t>(cols)));
  std::array<float, kPiece> buffer;
  for (int64_t c = 0; c < cols; c += kPiece) {
    const int64_t n = std::min(kPiece, cols - c);
    unpack(tensor.dtype, tensor.bytes.data() + r * source_row, c, n, buffer.data());
    std::byte* at = to + c / traits(dtype).block_size * traits(dtype).block_bytes;
    if (is_quantized(dtype)) {
      quantize(dtype, buffer.data(), n, at);
    } else {
      pack(dtype, buffer.data(), n, at);
    }
  }
}

}  // namespace

void CpuWeight::pack_into_panels(const TensorView& tensor, ThreadPool& pool, CpuArena& arena) {
  checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), "the tensor " + tensor.name);
  copy_ = arena.take(kept_bytes(dtype, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols)),
                     "the weights, as " + std::string(name(dtype)));
  data_ = copy_;
  if (dtype == tensor.dtype) {
    pool.parallel_for(rows, kPanelRows, [&](int64_t begin, int64_t end, int) {
      pack_panels(dtype, tensor.bytes.data(), rows, cols, begin, end, copy_);
    });
    return;
  }
  const auto row = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  const int64_t panel = static_cast<int64_t>(kept_bytes(dtype, 1, static_cast<uint64_t>(cols)));
  std::vector<std::vector<std::byte>> quantized(static_cast<size_t>(pool.size()));
  for (auto& buffer : quantized) buffer.resize(static_cast<size_t>(row * kPanelRows));
  pool.parallel_for(rows, kPanelRows, [&](int64_t begin, int64_t end, int worker) {
    std::byte* of_panel = quantized[static_cast<size_t>(worker)].data();
    for (int64_t r = begin; r < end; r += kPanelRows) {
      const int64_t count = std::min(kPanelRows, end - r);
      for (int64_t i = 0; i < count; ++i) convert_row(tensor, r + i, dtype, of_panel + i * row);
      pack_panels(dtype, of_panel, count, cols, 0, count, copy_ + r / kPanelRows * panel);
    }
  });
}

void CpuWeight::convert(const TensorView& tensor, ThreadPool& pool, CpuArena& arena) {
  const auto row = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  copy_ = arena.take(
      checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(row), "the tensor " + tensor.name),
      "the weights, converted to " + std::string(name(dtype)));
  data_ = copy_;
  pool.parallel_for(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) convert_row(tensor, r, dtype, copy_ + r * row);
  });
}

void CpuWeight::read_row(int64_t row, float* out) const {
  if (is_quantized(dtype)) {
    unpack_panel_row(dtype, data_, cols, row, out);
  } else {
    unpack(dtype, data_ + row * static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols))), 0, cols,
           out);
  }
}

uint64_t kept_bytes(DType dtype, uint64_t rows, uint64_t cols) {
  return is_quantized(dtype) ? panel_bytes(dtype, rows, cols) : bytes_of(dtype, rows * cols);
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
