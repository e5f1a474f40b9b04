#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/vulkan/vulkan_device.h"

namespace qwench {

/// Storage buffers that a shader may see, and the bytes of its arguments (every device has 128).
inline constexpr uint32_t kShaderBindings = 8;
inline constexpr uint32_t kArgumentBytes = 64;

/// A part of a buffer as a shader sees it.
struct BufferBinding {
  uint32_t slot = 0;
  const VulkanBuffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: up to the buffer's end
};

/// Compute pipelines, made when first asked for, and the descriptor sets of what they work on, made once for
/// each set of buffers. What the driver compiled is kept on disk, in a file for each driver and device.
class VulkanPipelines {
 public:
  /// Specialization constants 0, 1, ... of a shader.
  using Constants = std::array<uint32_t, 2>;

  explicit VulkanPipelines(std::shared_ptr<VulkanDevice> device);
  ~VulkanPipelines();
  VulkanPipelines(const VulkanPipelines&) = delete;
  VulkanPipelines& operator=(const VulkanPipelines&) = delete;

  /// `shader` names one of embedded_shaders(). Throws Error.
  VkPipeline pipeline(std::string_view shader, Constants constants);
  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSet descriptors(std::span<const BufferBinding> bindings);
  /// Forgets all descriptor sets; no commands that use them may run or be submitted again.
  void forget_descriptors();
  /// Writes the driver's cache to disk, where pipelines were made since. Failures are not errors.
  void save() noexcept;

 private:
  void make_layouts();
  void open_cache();
  VkShaderModule module_of(std::string_view shader);
  VkDescriptorSet allocate();

  std::shared_ptr<VulkanDevice> device_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::filesystem::path cache_file_;
  bool changed_ = false;
  std::map<std::string, VkShaderModule, std::less<>> modules_;
  std::map<std::pair<std::string, Constants>, VkPipeline> pipelines_;
  std::vector<VkDescriptorPool> pools_;
  uint32_t left_in_pool_ = 0;
  std::map<std::vector<uint64_t>, VkDescriptorSet> sets_;
};

}  // namespace qwench
