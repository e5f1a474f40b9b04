#pragma once

#include <array>
#include <memory>
#include <span>

#include "backend/vulkan/vulkan_device.h"

namespace qwench {

/// Brings bytes to memory that the host does not see, by the device's copy queue. While one half of its
/// buffer is copied the other is filled.
class VulkanStaging {
 public:
  static constexpr uint64_t kHalf = uint64_t{8} << 20;

  /// `buffer` is mapped and has two halves; `device` outlives this. Throws Error.
  VulkanStaging(VulkanDevice& device, std::unique_ptr<VulkanBuffer> buffer);
  ~VulkanStaging();  ///< once the device is idle
  VulkanStaging(const VulkanStaging&) = delete;
  VulkanStaging& operator=(const VulkanStaging&) = delete;

  /// Returns when `bytes` were taken, not when they have arrived. Throws Error (device_lost, out_of_memory).
  void write(const VulkanBuffer& to, uint64_t offset, std::span<const std::byte> bytes);
  /// Reached when all that was written has arrived.
  QueuePoint arrival() const { return {timeline_, copies_}; }
  /// Waits until arrival() has reached `value`. Any thread may call it.
  VkResult wait(uint64_t value) const;

 private:
  VulkanDevice& device_;
  std::unique_ptr<VulkanBuffer> buffer_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::array<VkCommandBuffer, 2> commands_{};
  uint64_t copies_ = 0;
};

}  // namespace qwench
