#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backend/device.h"
#include "backend/vulkan/vulkan_api.h"

namespace qwench {

/// A physical device with what was asked of it once.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint32_t compute_family = 0;
  uint32_t compute_queues = 1;                     // queues of that family
  uint32_t timestamp_bits = 0;                     // of that family; 0: no timestamps
  uint32_t copy_family = VK_QUEUE_FAMILY_IGNORED;  // a family for copies alone, where there is one
  uint32_t copy_timestamp_bits = 0;                // of the queue that copies
  bool memory_budget = false;                      // VK_EXT_memory_budget
  bool portability_subset = false;                 // VK_KHR_portability_subset, which must be enabled then
  uint8_t cache_uuid[VK_UUID_SIZE] = {};
};

/// Vulkan in this process, with its validation layers where the environment has QWENCH_VULKAN_VALIDATION=1.
/// Thread-safe.
class VulkanInstance {
 public:
  /// The one of this process, which lives as long as somebody holds it. Throws Error (unsupported).
  static std::shared_ptr<VulkanInstance> get();
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  const VulkanApi& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }
  /// Warnings and errors of the validation layers so far; each was logged.
  static int validation_messages();

  /// What the driver would give this process now of the device's own memory.
  uint64_t budget(const PhysicalDevice& device) const;

 private:
  VulkanInstance();
  void watch();

  VulkanApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<PhysicalDevice> devices_;
};

}  // namespace qwench
