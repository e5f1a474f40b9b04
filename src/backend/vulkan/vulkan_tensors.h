#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/vulkan/vulkan_device.h"
#include "backend/vulkan/weight_layout.h"

namespace qwench {

/// f32 rows, `stride` floats apart; the padding behind each row is zero and stays so.
class VulkanMatrix final : public Matrix {
 public:
  /// Throws Error: invalid_argument, out_of_memory.
  VulkanMatrix(VulkanDevice& device, int capacity, int cols);

  const VulkanBuffer& buffer() const { return *buffer_; }
  uint32_t stride = 0;

 private:
  std::unique_ptr<VulkanBuffer> buffer_;
};

/// A matrix as weight_layout.h has it, or a vector ([1, n]) as f32. It lies on the device, or in the host's
/// memory where its layer is streamed.
class VulkanWeight final : public Weight {
 public:
  static constexpr int kResident = -1;

  const VulkanBuffer& buffer() const { return *buffer_; }
  WeightLayout layout;             // of a matrix
  int streamed_layer = kResident;  // which layer it is streamed with
  uint64_t slot_offset = 0;        // where it lies in the layer's slot then

 private:
  friend class WeightLoader;
  std::unique_ptr<VulkanBuffer> buffer_;
};

/// Cells as shaders/cells.glsl has them, a buffer of keys and one of values for each layer.
class VulkanKvCache final : public KvCache {
 public:
  /// Throws Error: unsupported (cell type, head size), invalid_argument, out_of_memory.
  VulkanKvCache(VulkanDevice& device, DType cell, int layers, int blocks, int kv_heads, int head_dim);

  const VulkanBuffer& keys(int layer) const { return *keys_[static_cast<size_t>(layer)]; }
  const VulkanBuffer& values(int layer) const { return *values_[static_cast<size_t>(layer)]; }
  uint64_t block_bytes() const { return block_bytes_; }  // of one layer, of the keys alone

 private:
  uint64_t block_bytes_ = 0;
  std::vector<std::unique_ptr<VulkanBuffer>> keys_;
  std::vector<std::unique_ptr<VulkanBuffer>> values_;
};

/// Puts tensors on the device, or, of layers from `resident_layers` on, in the host's memory.
class WeightLoader {
 public:
  WeightLoader(std::shared_ptr<VulkanDevice> device, ThreadPool& pool, bool keeps_f32, int resident_layers);

  /// Throws Error: malformed where the tensor's bytes do not fit its shape, out_of_memory. Warns of numbers
  /// that f16 cannot hold and, once for each type, of types that shaders do not read.
  std::unique_ptr<VulkanWeight> load(const TensorView& tensor, DType wanted);

  uint64_t slot_bytes() const { return slot_bytes_; }  ///< of the largest streamed layer; 0: none is

 private:
  void fill(VulkanWeight& weight, const TensorView& tensor);
  void load_vector(VulkanWeight& weight, const TensorView& tensor);
  void place(VulkanWeight& weight, const std::string& name, uint64_t bytes);
  void tell_conversion(const TensorView& tensor, DType wanted, DType kept);

  std::shared_ptr<VulkanDevice> device_;
  ThreadPool& pool_;
  const bool keeps_f32_;
  const int resident_layers_;
  std::vector<uint64_t> layer_bytes_;  // [layers] of streamed ones
  uint64_t slot_bytes_ = 0;
  std::vector<DType> told_;
  std::vector<std::byte> panels_;
};

}  // namespace qwench
