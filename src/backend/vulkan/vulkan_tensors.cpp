#include "backend/vulkan/vulkan_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include "backend/device.h"
#include "core/log.h"
#include "kernels/unpack.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr int kLargestHead = 256;  // shaders/attention.comp
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
constexpr uint64_t kSlotAlignment = 512;  // above what any device asks for
constexpr std::string_view kLayers = "model.layers.";

uint64_t device_bytes(uint64_t a, uint64_t b, const std::string& purpose) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (uint64_t{1} << 40))
    throw Error(ErrorKind::out_of_memory, fmt::format("{} would take more than a terabyte", purpose));
  return product;
}

int layer_of(std::string_view name) {
  int layer = VulkanWeight::kResident;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    std::from_chars(name.data(), name.data() + name.size(), layer);
  }
  return layer;
}

void check_bytes(const TensorView& tensor) {
  const DTypeTraits& t = traits(tensor.dtype);
  const int64_t rows = tensor.rows();
  const int64_t cols = tensor.cols();
  const std::string purpose = "the tensor " + tensor.name;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool fits = rows >= 1 && cols >= 1 && rows <= kMost && cols <= kMost && cols % t.block_size == 0 &&
                    device_bytes(device_bytes(static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(cols / t.block_size), purpose),
                                 static_cast<uint64_t>(t.block_bytes), purpose) == tensor.bytes.size();
  if (!fits) {
    throw Error(ErrorKind::malformed,
                fmt::format("the tensor {} has {} bytes, which do not make {} rows of {} {} numbers",
                            tensor.name, tensor.bytes.size(), rows, cols, t.name));
  }
}

}  // namespace

VulkanMatrix::VulkanMatrix(VulkanDevice& device, int row_capacity, int col_count) {
  if (row_capacity < 0 || col_count < 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a matrix of {} rows and {} columns was asked for", row_capacity, col_count));
  }
  rows = 0;
  cols = col_count;
  capacity = row_capacity;
  stride = (static_cast<uint32_t>(cols) + 31) / 32 * 32;
  const uint64_t bytes = device_bytes(static_cast<uint64_t>(capacity), uint64_t{stride} * sizeof(float),
                                      "a buffer of activations");
  if (bytes > device.info().max_binding) {
    throw Error(
        ErrorKind::out_of_memory,
        fmt::format(
            "{} rows of {} numbers were asked for, but {} takes buffers of {} MB at most; use a smaller "
            "--max-batch-tokens or --device cpu",
            capacity, cols, device.info().name, device.info().max_binding >> 20));
  }
  buffer_ = device.make_buffer(bytes, BufferPlace::device, "activations");
  device.clear(*buffer_);
}

VulkanKvCache::VulkanKvCache(VulkanDevice& device, DType cell, int layer_count, int block_count,
                             int kv_head_count, int head_size) {
  if (layer_count < 1 || block_count < 1 || kv_head_count < 1 || head_size < 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a key-value cache of {} layers, {} blocks, {} heads of {} was asked for",
                            layer_count, block_count, kv_head_count, head_size));
  }
  check_device_cells(cell, head_size);
  if (head_size > kLargestHead || head_size % 2 != 0) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format(
            "heads of {} elements do not run on a Vulkan device, which takes even ones of {} at most; use "
            "--device cpu",
            head_size, kLargestHead));
  }
  dtype = cell;
  layers = layer_count;
  blocks = block_count;
  kv_heads = kv_head_count;
  head_dim = head_size;
  const std::string purpose = "the key-value cache";
  block_bytes_ = device_bytes(bytes_of(cell, static_cast<uint64_t>(head_size)) * kBlockSize,
                              static_cast<uint64_t>(kv_heads), purpose);
  const uint64_t bytes = device_bytes(block_bytes_, static_cast<uint64_t>(blocks), purpose);
  device_bytes(bytes, 2 * static_cast<uint64_t>(layers), purpose);
  if (bytes > device.info().max_binding) {
    throw Error(
        ErrorKind::out_of_memory,
        fmt::format(
            "a layer's keys take {} MB, but {} takes buffers of {} MB at most; use a shorter context (-c), "
            "a smaller --max-batch, or --device cpu",
            bytes >> 20, device.info().name, device.info().max_binding >> 20));
  }
  for (int i = 0; i < layers; ++i) {
    keys_.push_back(device.make_buffer(bytes, BufferPlace::device, purpose));
    values_.push_back(device.make_buffer(bytes, BufferPlace::device, purpose));
  }
}

WeightLoader::WeightLoader(std::shared_ptr<VulkanDevice> device, ThreadPool& pool, bool keeps_f32,
                           int resident_layers)
    : device_(std::move(device)), pool_(pool), keeps_f32_(keeps_f32), resident_layers_(resident_layers) {}

std::unique_ptr<VulkanWeight> WeightLoader::load(const TensorView& tensor, DType wanted) {
  check_bytes(tensor);
  auto weight = std::make_unique<VulkanWeight>();
  weight->rows = tensor.rows();
  weight->cols = tensor.cols();
  if (weight->rows == 1) {
    load_vector(*weight, tensor);
    return weight;
  }
  weight->dtype = layout_type(tensor, wanted, keeps_f32_);
  tell_conversion(tensor, wanted, weight->dtype);
  weight->layout = WeightLayout(weight->dtype, weight->rows, weight->cols);
  if (weight->layout.panel_bytes() > device_->info().max_binding) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("32 rows of the tensor {} are larger than the {} MB that {} takes; use --device cpu",
                    tensor.name, device_->info().max_binding >> 20, device_->info().name));
  }
  place(*weight, tensor.name, weight->layout.bytes());
  fill(*weight, tensor);
  return weight;
}

void WeightLoader::load_vector(VulkanWeight& weight, const TensorView& tensor) {
  weight.dtype = DType::f32;
  std::vector<float> values(static_cast<size_t>(weight.cols));
  unpack(tensor.dtype, tensor.bytes.data(), 0, weight.cols, values.data());
  weight.buffer_ = device_->make_buffer(values.size() * sizeof(float), BufferPlace::device, "the weights");
  device_->write(*weight.buffer_, 0, std::as_bytes(std::span(values)));
}

void WeightLoader::place(VulkanWeight& weight, const std::string& name, uint64_t bytes) {
  const int layer = layer_of(name);
  if (layer < resident_layers_) {  // what belongs to no layer is resident
    weight.buffer_ = device_->make_buffer(bytes, BufferPlace::device, "the weights");
    return;
  }
  if (layer_bytes_.size() <= static_cast<size_t>(layer)) layer_bytes_.resize(static_cast<size_t>(layer) + 1);
  uint64_t& used = layer_bytes_[static_cast<size_t>(layer)];
  weight.streamed_layer = layer;
  weight.slot_offset = used;
  weight.buffer_ =
      device_->make_buffer(bytes, BufferPlace::pinned, "the weights of layers that are streamed");
  used += (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  slot_bytes_ = std::max(slot_bytes_, used);
}

void WeightLoader::fill(VulkanWeight& weight, const TensorView& tensor) {
  const WeightLayout& layout = weight.layout;
  const auto piece = std::max<int64_t>(1, static_cast<int64_t>(kPieceBytes / layout.panel_bytes()));
  int64_t too_large = 0;
  for (int64_t first = 0; first < layout.panels(); first += piece) {
    const int64_t count = std::min(piece, layout.panels() - first);
    const uint64_t offset = static_cast<uint64_t>(first) * layout.panel_bytes();
    const uint64_t bytes = static_cast<uint64_t>(count) * layout.panel_bytes();
    if (std::byte* mapped = weight.buffer_->mapped()) {
      too_large += lay_out(tensor, layout, first, count, pool_, mapped + offset);
      continue;
    }
    panels_.resize(std::max<size_t>(panels_.size(), bytes));
    too_large += lay_out(tensor, layout, first, count, pool_, panels_.data());
    device_->write(*weight.buffer_, offset, std::span(panels_).first(bytes));
  }
  if (too_large > 0) {
    log_warning(
        fmt::format("{} of the numbers of the tensor {} are too large for f16 and became its largest, 65504; "
                    "--dtype f32 or --device cpu keep them",
                    too_large, tensor.name));
  }
}

void WeightLoader::tell_conversion(const TensorView& tensor, DType wanted, DType kept) {
  const bool asked_for = kept == wanted || kept == tensor.dtype;
  if (asked_for || std::find(told_.begin(), told_.end(), tensor.dtype) != told_.end()) return;
  told_.push_back(tensor.dtype);
  const std::string message =
      fmt::format("matrices stored as {} are kept as {} on the device", name(tensor.dtype), name(kept));
  if (wanted == DType::bf16 || wanted == DType::f32) {
    log_detail(message);
  } else {
    log_warning(message + ", as its shaders do not read that type");
  }
}

}  // namespace qwench
