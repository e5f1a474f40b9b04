#include "backend/vulkan/weight_layout.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/quantize.h"
#include "kernels/unpack.h"

namespace qwench {
namespace {

constexpr float kLargestF16 = 65504.0F;
constexpr int64_t kQuantBlock = 32;

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Bytes of a block that stand behind the row's integers, and where they are in the block.
struct Scales {
  size_t bytes;
  size_t at;
};

Scales scales_of(DType dtype) {
  if (dtype == DType::q6_k) return {2, 208};
  return {static_cast<size_t>(dtype == DType::q4_1 ? 4 : 2), 0};
}

/// ggml's blocks of a row as integers first and scales behind.
void split_blocks(DType dtype, const std::byte* blocks, const WeightLayout& layout, std::byte* row) {
  const Scales head = scales_of(dtype);
  const auto block_bytes = static_cast<size_t>(traits(dtype).block_bytes);
  const auto count = static_cast<size_t>(layout.cols / traits(dtype).block_size);
  const size_t rest = block_bytes - head.bytes;
  std::byte* scales = row + size_t{layout.quants} * 16;
  for (size_t b = 0; b < count; ++b) {
    const std::byte* block = blocks + b * block_bytes;
    std::memcpy(scales + b * head.bytes, block + head.at, head.bytes);
    std::memcpy(row + b * rest, block + (head.at == 0 ? head.bytes : 0), rest);
  }
}

/// Rows of a tensor, one after the other, as the layout has them but for the panels.
class RowMaker {
 public:
  RowMaker(const TensorView& tensor, const WeightLayout& layout)
      : tensor_(tensor),
        layout_(layout),
        source_bytes_(static_cast<int64_t>(bytes_of(tensor.dtype, static_cast<uint64_t>(layout.cols)))),
        values_(static_cast<size_t>(layout.cols)),
        blocks_(is_quantized(layout.dtype) ? bytes_of(layout.dtype, static_cast<uint64_t>(layout.cols)) : 0),
        row_(size_t{layout.units} * 16) {}

  /// Of row r; zeros where there is none.
  const std::byte* row(int64_t r) {
    std::fill(row_.begin(), row_.end(), std::byte{0});
    if (r >= layout_.rows) return row_.data();
    const std::byte* source = tensor_.bytes.data() + r * source_bytes_;
    if (is_quantized(layout_.dtype)) {
      const std::byte* blocks = source;
      if (tensor_.dtype != layout_.dtype) {
        unpack(tensor_.dtype, source, 0, layout_.cols, values_.data());
        quantize(layout_.dtype, values_.data(), layout_.cols, blocks_.data());
        blocks = blocks_.data();
      }
      if (layout_.dtype == DType::q4_k) {
        std::memcpy(row_.data(), blocks, row_.size());
      } else {
        split_blocks(layout_.dtype, blocks, layout_, row_.data());
      }
      return row_.data();
    }
    if (tensor_.dtype == layout_.dtype) {
      std::memcpy(row_.data(), source, static_cast<size_t>(source_bytes_));
      return row_.data();
    }
    unpack(tensor_.dtype, source, 0, layout_.cols, values_.data());
    if (layout_.dtype == DType::f16) clamp();
    pack(layout_.dtype, values_.data(), layout_.cols, row_.data());
    return row_.data();
  }

  int64_t too_large() const { return too_large_; }

 private:
  void clamp() {
    for (float& value : values_) {
      if (!(std::abs(value) > kLargestF16) || std::isinf(value)) continue;
      value = std::copysign(kLargestF16, value);
      ++too_large_;
    }
  }

  const TensorView& tensor_;
  const WeightLayout& layout_;
  int64_t source_bytes_;
  std::vector<float> values_;
  std::vector<std::byte> blocks_;
  std::vector<std::byte> row_;
  int64_t too_large_ = 0;
};

}  // namespace

bool has_layout(DType dtype) noexcept { return !shader_ending(dtype).empty(); }

std::string_view shader_ending(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::q8_0:
    case DType::q4_0:
    case DType::q4_1:
    case DType::q4_k:
    case DType::q6_k:
      return name(dtype);
    default:
      return {};
  }
}

DType layout_type(const TensorView& tensor, DType wanted, bool keeps_f32) {
  if (wanted == DType::f32) return keeps_f32 ? DType::f32 : DType::f16;
  if (wanted == DType::bf16) return DType::f16;
  if (has_layout(wanted)) return wanted;
  return tensor.cols() % kQuantBlock == 0 ? DType::q8_0 : DType::f16;
}

WeightLayout::WeightLayout(DType type, int64_t row_count, int64_t col_count)
    : dtype(type), rows(row_count), cols(col_count) {
  const int64_t padded = divided_up(cols, 32) * 32;
  columns = static_cast<uint32_t>(padded);
  int64_t scale_bytes = 0;
  int64_t integers = 0;
  switch (dtype) {
    case DType::f32:
      integers = padded * 4;
      break;
    case DType::q8_0:
      integers = padded;
      scale_bytes = padded / kQuantBlock * 2;
      break;
    case DType::q4_0:
    case DType::q4_1:
      integers = padded / 2;
      scale_bytes = padded / kQuantBlock * (dtype == DType::q4_1 ? 4 : 2);
      break;
    case DType::q6_k:
      integers = cols / 256 * 208;
      scale_bytes = cols / 256 * 2;
      break;
    case DType::q4_k:
      integers = static_cast<int64_t>(bytes_of(dtype, static_cast<uint64_t>(cols)));
      break;
    default:
      integers = padded * 2;
      break;
  }
  quants = static_cast<uint32_t>(divided_up(integers, 16));
  units = quants + static_cast<uint32_t>(divided_up(scale_bytes, 16));
}

int64_t lay_out(const TensorView& tensor, const WeightLayout& layout, int64_t first, int64_t count,
                ThreadPool& pool, std::byte* to) {
  std::atomic<int64_t> too_large{0};
  pool.parallel_for(count, 1, [&](int64_t begin, int64_t end, int) {
    RowMaker rows(tensor, layout);
    for (int64_t p = begin; p < end; ++p) {
      std::byte* panel = to + static_cast<uint64_t>(p) * layout.panel_bytes();
      for (int64_t r = 0; r < WeightLayout::kPanelRows; ++r) {
        const std::byte* row = rows.row((first + p) * WeightLayout::kPanelRows + r);
        for (size_t unit = 0; unit < layout.units; ++unit) {
          const size_t at = unit * static_cast<size_t>(WeightLayout::kPanelRows) + static_cast<size_t>(r);
          std::memcpy(panel + at * 16, row + unit * 16, 16);
        }
      }
    }
    too_large += rows.too_large();
  });
  return too_large;
}

}  // namespace qwench
