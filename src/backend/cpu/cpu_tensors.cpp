#include "backend/cpu/cpu_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/mapped_file.h"
#include "kernels/kv_cells.h"
#include "kernels/panels.h"
#include "kernels/plain_panels.h"
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
  // Rows apart by a power of two would share a few sets of the L1 cache.
  if (stride % 256 == 0) stride += 16;
  const uint64_t bytes =
      checked_product(static_cast<uint64_t>(capacity), static_cast<uint64_t>(stride) * sizeof(float),
                      "a buffer of activations");
  memory_ = CpuMemory(bytes, "activations", Pages::small);
}

namespace {

// Outliers cost 8 bytes each, and time: with more than so many of them packing gains nothing.
constexpr double kMostOutliers = 0.01;

// Judged by a few panels of a matrix that is bf16 in its file; one that is converted is of other types' usual
// weights.
bool worth_packing(const TensorView& tensor, DType kept_as) {
  if (kept_as != DType::bf16 || !can_pack_bf16(tensor.cols())) return false;
  if (tensor.dtype != DType::bf16) return true;
  constexpr int64_t kSamples = 8;
  const int64_t panels = (tensor.rows() + kPlainPanelRows - 1) / kPlainPanelRows;
  const int64_t samples = std::min(kSamples, panels);
  double share = 0;
  for (int64_t i = 0; i < samples; ++i) {
    share += packed_outlier_share(tensor.bytes.data(), tensor.rows(), tensor.cols(), panels * i / samples);
  }
  return share <= kMostOutliers * static_cast<double>(samples);
}

}  // namespace

CpuWeight::CpuWeight(const TensorView& tensor, DType kept_as, CpuLayout wanted, ThreadPool& pool,
                     CpuArena& arena)
    : layout_(tensor.rows() == 1 ? CpuLayout::rows : wanted) {
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
  if (layout_ == CpuLayout::panels_later && (dtype != tensor.dtype || is_quantized(dtype)))
    layout_ = CpuLayout::panels;
  if (dtype == tensor.dtype && rows > 1 && (layout_ == CpuLayout::rows || packs_later())) {
    data_ = tensor.bytes.data();
    in_place = true;
    if (packs_later()) {
      prefetch(tensor.bytes);
      take_panels(arena);
    }
    return;
  }
  if (is_quantized(dtype) && dtype != tensor.dtype &&
      (!can_quantize(dtype) || cols % traits(dtype).block_size != 0)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the tensor {} is stored as {} and cannot be kept as {}; choose f32, "
                            "f16, bf16, its own type, or q8_0, q4_0 or q4_k where the rows are whole blocks",
                            tensor.name, t.name, name(dtype)));
  }
  if (layout_ == CpuLayout::packed_panels && !worth_packing(tensor, dtype)) layout_ = CpuLayout::panels;
  if (layout_ == CpuLayout::panels) {
    pack_into_panels(tensor, pool, arena);
  } else if (layout_ == CpuLayout::packed_panels) {
    pack_exactly(tensor, pool, arena);
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

int64_t rows_of_panel(DType dtype) { return is_quantized(dtype) ? kPanelRows : kPlainPanelRows; }

// Rows [begin, end) of a matrix of `rows` rows as `dtype`, into its panels.
void pack_rows(DType dtype, const std::byte* matrix, int64_t rows, int64_t cols, int64_t begin, int64_t end,
               std::byte* panels) {
  if (is_quantized(dtype)) {
    pack_panels(dtype, matrix, rows, cols, begin, end, panels);
  } else {
    pack_plain_panels(dtype, matrix, rows, cols, begin, end, panels);
  }
}

// f(begin, end, worker) for all rows, shared among threads in multiples of `grain`. Piece by piece, each of
// whose memory is given back before the next is read: never two copies of a tensor.
template <typename F>
void for_pieces(std::span<const std::byte> bytes, bool mapped, int64_t rows, int64_t grain, ThreadPool& pool,
                F&& f) {
  constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
  const uint64_t row_bytes = bytes.size() / static_cast<uint64_t>(rows);
  const int64_t piece =
      (static_cast<int64_t>(kPieceBytes / std::max<uint64_t>(1, row_bytes)) / grain + 1) * grain;
  for (int64_t first = 0; first < rows; first += piece) {
    const int64_t count = std::min(piece, rows - first);
    pool.parallel_for(count, grain,
                      [&](int64_t begin, int64_t end, int worker) { f(first + begin, first + end, worker); });
    if (mapped)
      release(
          bytes.subspan(static_cast<uint64_t>(first) * row_bytes, static_cast<uint64_t>(count) * row_bytes));
  }
}

}  // namespace

void CpuWeight::take_panels(CpuArena& arena) {
  copy_ = arena.take(kept_bytes(dtype, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols)),
                     "the weights, as " + std::string(name(dtype)));
}

std::span<const std::byte> CpuWeight::pack_now(ThreadPool& pool) {
  const uint64_t row_bytes = bytes_of(dtype, static_cast<uint64_t>(cols));
  const std::span<const std::byte> in_file(data_, static_cast<uint64_t>(rows) * row_bytes);
  for_pieces(in_file, true, rows, kPlainPanelRows, pool, [&](int64_t begin, int64_t end, int) {
    pack_plain_panels(dtype, in_file.data(), rows, cols, begin, end, copy_);
  });
  data_ = copy_;
  layout_ = CpuLayout::panels;
  in_place = false;
  return in_file;
}

void CpuWeight::pack_into_panels(const TensorView& tensor, ThreadPool& pool, CpuArena& arena) {
  checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), "the tensor " + tensor.name);
  take_panels(arena);
  data_ = copy_;
  const int64_t panel_rows = rows_of_panel(dtype);
  if (dtype == tensor.dtype) {
    for_pieces(tensor.bytes, tensor.mapped, rows, panel_rows, pool, [&](int64_t begin, int64_t end, int) {
      pack_rows(dtype, tensor.bytes.data(), rows, cols, begin, end, copy_);
    });
    return;
  }
  const auto row = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  const auto panel =
      static_cast<int64_t>(kept_bytes(dtype, static_cast<uint64_t>(panel_rows), static_cast<uint64_t>(cols)));
  std::vector<std::vector<std::byte>> converted(static_cast<size_t>(pool.size()));
  for (auto& buffer : converted) buffer.resize(static_cast<size_t>(row * panel_rows));
  for_pieces(tensor.bytes, tensor.mapped, rows, panel_rows, pool,
             [&](int64_t begin, int64_t end, int worker) {
               std::byte* of_panel = converted[static_cast<size_t>(worker)].data();
               for (int64_t r = begin; r < end; r += panel_rows) {
                 const int64_t count = std::min(panel_rows, end - r);
                 for (int64_t i = 0; i < count; ++i) convert_row(tensor, r + i, dtype, of_panel + i * row);
                 pack_rows(dtype, of_panel, count, cols, 0, count, copy_ + r / panel_rows * panel);
               }
             });
}

void CpuWeight::pack_exactly(const TensorView& tensor, ThreadPool& pool, CpuArena& arena) {
  const int64_t panel = packed_panel_bytes(cols);
  checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), "the tensor " + tensor.name);
  const uint64_t panel_bytes = packed_panels_bytes(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols));
  copy_ = arena.take(panel_bytes, "the weights, as packed bf16");
  data_ = copy_;
  // What a worker packs, and its outliers.
  struct Part {
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<PackedOutlier> outliers;
    std::vector<std::byte> converted;
  };
  std::vector<Part> parts(static_cast<size_t>(pool.size()));
  const auto row = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  pool.parallel_for(rows, kPlainPanelRows, [&](int64_t begin, int64_t end, int worker) {
    Part& part = parts[static_cast<size_t>(worker)];
    part.begin = begin;
    part.end = end;
    if (dtype == tensor.dtype) {
      pack_bf16(tensor.bytes.data(), rows, cols, begin, end, copy_, part.outliers);
      return;
    }
    part.converted.resize(static_cast<size_t>(row * kPlainPanelRows));
    for (int64_t r = begin; r < end; r += kPlainPanelRows) {
      const int64_t count = std::min(kPlainPanelRows, end - r);
      for (int64_t i = 0; i < count; ++i) convert_row(tensor, r + i, dtype, part.converted.data() + i * row);
      pack_bf16(part.converted.data(), count, cols, 0, count, copy_ + r / kPlainPanelRows * panel,
                part.outliers);
    }
  });
  uint64_t count = 0;
  for (const Part& part : parts) count += part.outliers.size();
  if (count > UINT32_MAX) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the tensor {} has too many outliers for bf16p; choose bf16", tensor.name));
  }
  auto* outliers = reinterpret_cast<PackedOutlier*>(
      arena.take(count * sizeof(PackedOutlier), "the weights, as packed bf16"));
  uint32_t first = 0;
  for (const Part& part : parts) {
    move_packed_outliers(copy_, cols, part.begin, part.end, first);
    std::copy(part.outliers.begin(), part.outliers.end(), outliers + first);
    first += static_cast<uint32_t>(part.outliers.size());
  }
  outliers_ = outliers;
  stored_bytes = panel_bytes + count * sizeof(PackedOutlier);
}

void CpuWeight::convert(const TensorView& tensor, ThreadPool& pool, CpuArena& arena) {
  const auto row = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
  copy_ = arena.take(
      checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(row), "the tensor " + tensor.name),
      "the weights, converted to " + std::string(name(dtype)));
  data_ = copy_;
  for_pieces(tensor.bytes, tensor.mapped, rows, 1, pool, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) convert_row(tensor, r, dtype, copy_ + r * row);
  });
}

void CpuWeight::read_row(int64_t row, float* out) const {
  if (layout_ == CpuLayout::rows || packs_later()) {
    unpack(dtype, data_ + row * static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols))), 0, cols,
           out);
  } else if (is_quantized(dtype)) {
    unpack_panel_row(dtype, data_, cols, row, out);
  } else if (packed()) {
    // In the second half of the row: widened from its beginning on, it is read before it is written to.
    auto* stored = reinterpret_cast<uint16_t*>(out) + cols;
    unpack_bf16_row(data_, outliers_, cols, row, stored);
    unpack(dtype, reinterpret_cast<const std::byte*>(stored), 0, cols, out);
  } else {
    std::array<std::byte, kPiece * sizeof(float)> stored;
    for (int64_t k = 0; k < cols; k += kPiece) {
      const int64_t n = std::min(kPiece, cols - k);
      plain_panel_row(dtype, data_, cols, row, k, n, stored.data());
      unpack(dtype, stored.data(), 0, n, out + k);
    }
  }
}

uint64_t kept_bytes(DType dtype, uint64_t rows, uint64_t cols, bool packed_bf16) {
  if (rows == 1) return bytes_of(dtype, cols);
  if (packed_bf16 && dtype == DType::bf16 && can_pack_bf16(static_cast<int64_t>(cols)))
    return packed_panels_bytes(rows, cols);
  return is_quantized(dtype) ? panel_bytes(dtype, rows, cols) : plain_panels_bytes(dtype, rows, cols);
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
