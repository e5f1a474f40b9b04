#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/tensor_view.h"
#include "core/thread_pool.h"
#include "qwench/dtype.h"

namespace qwench {

/// How a matrix lies on the device (shaders/weight.glsl reads it). Rows are filled up with zeros to a
/// multiple of 32 elements and cut into units of 16 bytes; 32 rows make a panel, in which the same unit of
/// all rows lies together: [panels, units, 32 rows, 16 bytes]. Of q8_0, q4_0 and q4_1 a row has its integers
/// first, as in ggml's blocks, and then the blocks' scales (q4_1: scale and minimum);
/// q6_k has its blocks' d there. q4_k blocks are as ggml has them.
struct WeightLayout {
  static constexpr int64_t kPanelRows = 32;

  DType dtype = DType::f16;  // f32, f16, q8_0, q4_0, q4_1, q4_k or q6_k
  int64_t rows = 0;
  int64_t cols = 0;
  uint32_t columns = 0;  // cols, a multiple of 32
  uint32_t units = 0;    // of a row
  uint32_t quants = 0;   // units before a row's scales

  WeightLayout() = default;
  WeightLayout(DType dtype, int64_t rows, int64_t cols);

  int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  uint64_t panel_bytes() const { return uint64_t{units} * kPanelRows * 16; }
  uint64_t bytes() const { return static_cast<uint64_t>(panels()) * panel_bytes(); }
};

/// Whether shaders read this type.
bool has_layout(DType dtype) noexcept;
/// "q8_0": the ending of the names of shaders that read it.
std::string_view shader_ending(DType dtype) noexcept;

/// What a matrix stored as `tensor` is kept as where `wanted` is asked for (model/kept_type.h): bf16 as f16;
/// f32 as f16 unless `keeps_f32`; other types that shaders do not read as q8_0, or f16 where rows are no
/// whole blocks of 32.
DType layout_type(const TensorView& tensor, DType wanted, bool keeps_f32);

/// Lays the rows of the panels [first, first + count) out at `to`. `tensor` is converted to the layout's type
/// where it has another. Returns how many elements were too large for f16 and became its largest number.
int64_t lay_out(const TensorView& tensor, const WeightLayout& layout, int64_t first, int64_t count,
                ThreadPool& pool, std::byte* to);

}  // namespace qwench
