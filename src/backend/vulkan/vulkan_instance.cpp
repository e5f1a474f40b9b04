#include "backend/vulkan/vulkan_instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "core/log.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
// What linear_rows, linear_tile and attention need (their local sizes and shared memory).
constexpr uint32_t kInvocations = 256;
constexpr uint32_t kSharedMemory = 16384;
constexpr uint32_t kBindings = 8;

std::atomic<int> validation_count{0};

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  ++validation_count;
  log_warning(fmt::format("Vulkan validation: {}", data->pMessage));
  return VK_FALSE;
}

bool wants_validation() {
  const char* value = std::getenv("QWENCH_VULKAN_VALIDATION");
  return value != nullptr && std::string_view(value) == "1";
}

std::string type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "software";
    default:
      return "other";
  }
}

/// The heap that weights go to: the largest that is the device's own.
uint32_t device_heap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const auto is_own = [&](uint32_t heap) {
      return (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
    };
    if (is_own(i) && (!is_own(best) || memory.memoryHeaps[i].size > memory.memoryHeaps[best].size)) best = i;
  }
  return best;
}

bool has(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

std::vector<VkExtensionProperties> instance_extensions(const VulkanApi& api) {
  uint32_t count = 0;
  api.enumerate_instance_extensions(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  api.enumerate_instance_extensions(nullptr, &count, extensions.data());
  return extensions;
}

void choose_queues(const VulkanApi& api, PhysicalDevice& device) {
  uint32_t count = 0;
  api.get_queue_families(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.get_queue_families(device.handle, &count, families.data());
  bool found = false;
  for (uint32_t i = 0; i < count; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    const bool computes = (flags & VK_QUEUE_COMPUTE_BIT) != 0;
    if (computes && !found) {
      device.compute_family = i;
      device.compute_queues = families[i].queueCount;
      device.timestamp_bits = families[i].timestampValidBits;
      found = true;
    }
    if ((flags & VK_QUEUE_TRANSFER_BIT) != 0 && !computes && (flags & VK_QUEUE_GRAPHICS_BIT) == 0 &&
        device.copy_family == VK_QUEUE_FAMILY_IGNORED) {
      device.copy_family = i;
      device.copy_timestamp_bits = families[i].timestampValidBits;
    }
  }
  if (device.copy_family == VK_QUEUE_FAMILY_IGNORED) device.copy_timestamp_bits = device.timestamp_bits;
  if (!found) device.info.unusable = "it has no queue for compute shaders";
  device.info.copy_queue = device.copy_family != VK_QUEUE_FAMILY_IGNORED;
}

void judge(PhysicalDevice& device, bool timeline_semaphores) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  std::string& why = device.info.unusable;
  if (!why.empty()) return;
  if (device.properties.apiVersion < VK_API_VERSION_1_2) {
    why = fmt::format("it has Vulkan {}, and 1.2 is needed", device.info.api);
  } else if (!timeline_semaphores) {
    why = "it has no timeline semaphores";
  } else if (limits.maxComputeWorkGroupInvocations < kInvocations ||
             limits.maxComputeWorkGroupSize[0] < kInvocations) {
    why = fmt::format("its work groups have {} invocations at most, and {} are needed",
                      limits.maxComputeWorkGroupInvocations, kInvocations);
  } else if (limits.maxComputeSharedMemorySize < kSharedMemory) {
    why = fmt::format("its work groups have {} bytes of shared memory, and {} are needed",
                      limits.maxComputeSharedMemorySize, kSharedMemory);
  } else if (limits.maxPerStageDescriptorStorageBuffers < kBindings) {
    why = fmt::format("its shaders see {} buffers at most, and {} are needed",
                      limits.maxPerStageDescriptorStorageBuffers, kBindings);
  }
}

PhysicalDevice describe(const VulkanApi& api, VkPhysicalDevice handle, int index) {
  PhysicalDevice device;
  device.handle = handle;
  uint32_t count = 0;
  api.enumerate_device_extensions(handle, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  api.enumerate_device_extensions(handle, nullptr, &count, extensions.data());
  device.memory_budget = has(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  device.portability_subset = has(extensions, "VK_KHR_portability_subset");

  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  api.get_properties(handle, &properties);
  const bool modern = properties.properties.apiVersion >= VK_API_VERSION_1_2;
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  properties.pNext = &subgroup;
  if (modern) subgroup.pNext = &driver;
  api.get_properties(handle, &properties);
  device.properties = properties.properties;
  std::copy_n(device.properties.pipelineCacheUUID, VK_UUID_SIZE, device.cache_uuid);

  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  if (modern) features.pNext = &features12;
  api.get_features(handle, &features);

  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  api.get_memory_properties(handle, &memory);
  device.memory = memory.memoryProperties;

  const uint32_t version = device.properties.apiVersion;
  DeviceInfo& info = device.info;
  info.index = index;
  info.name = device.properties.deviceName;
  info.type = type_name(device.properties.deviceType);
  info.driver = modern ? fmt::format("{} {}", driver.driverName, driver.driverInfo)
                       : fmt::format("{:#x}", device.properties.driverVersion);
  info.api = fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                         VK_API_VERSION_PATCH(version));
  info.memory = device.memory.memoryHeaps[device_heap(device.memory)].size;
  info.has_budget = device.memory_budget;
  info.f16 = modern && features12.shaderFloat16 == VK_TRUE;
  info.int8 = modern && features12.shaderInt8 == VK_TRUE;
  info.subgroup = static_cast<int>(subgroup.subgroupSize);
  info.max_binding = device.properties.limits.maxStorageBufferRange;
  choose_queues(api, device);
  judge(device, modern && features12.timelineSemaphore == VK_TRUE);
  return device;
}

}  // namespace

std::shared_ptr<VulkanInstance> VulkanInstance::get() {
  static std::mutex mutex;
  static std::weak_ptr<VulkanInstance> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<VulkanInstance> instance = shared.lock();
  if (!instance) {
    instance = std::shared_ptr<VulkanInstance>(new VulkanInstance());
    shared = instance;
  }
  return instance;
}

VulkanInstance::VulkanInstance() : api_(VulkanApi::open()) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "qwench";
  application.apiVersion = VK_API_VERSION_1_2;
  const std::vector<VkExtensionProperties> there = instance_extensions(api_);
  std::vector<const char*> extensions;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  if (has(there, "VK_KHR_portability_enumeration")) {
    extensions.push_back("VK_KHR_portability_enumeration");
    create.flags |= 1;  // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
  }
  const bool validate = wants_validation();
  if (validate) {
    // The extension may be the layer's own.
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &kValidationLayer;
  }
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  const VkResult result = api_.create_instance(&create, nullptr, &instance_);
  if (result == VK_ERROR_LAYER_NOT_PRESENT) {
    throw Error(ErrorKind::unsupported,
                "QWENCH_VULKAN_VALIDATION=1 needs Vulkan's validation layers; install them "
                "(vulkan-validationlayers), or leave the variable out");
  }
  if (result != VK_SUCCESS) {
    throw Error(ErrorKind::unsupported,
                fmt::format("Vulkan does not start (error {}): no driver is installed for any device here; "
                            "install one (mesa-vulkan-drivers), or use --device cpu",
                            static_cast<int>(result)));
  }
  api_.load(instance_);
  if (validate) watch();
  uint32_t count = 0;
  api_.enumerate_physical_devices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  api_.enumerate_physical_devices(instance_, &count, handles.data());
  for (uint32_t i = 0; i < count; ++i) {
    devices_.push_back(describe(api_, handles[i], static_cast<int>(i)));
    devices_.back().info.budget = budget(devices_.back());
  }
}

VulkanInstance::~VulkanInstance() {
  if (messenger_ != VK_NULL_HANDLE) api_.destroy_debug_messenger(instance_, messenger_, nullptr);
  if (instance_ != VK_NULL_HANDLE) api_.destroy_instance(instance_, nullptr);
}

void VulkanInstance::watch() {
  VkDebugUtilsMessengerCreateInfoEXT create{};
  create.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  create.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  create.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  create.pfnUserCallback = on_message;
  if (api_.create_debug_messenger == nullptr ||
      api_.create_debug_messenger(instance_, &create, nullptr, &messenger_) != VK_SUCCESS)
    throw Error(ErrorKind::unsupported,
                "Vulkan's validation layers give no messages here (VK_EXT_debug_utils)");
}

int VulkanInstance::validation_messages() { return validation_count; }

uint64_t VulkanInstance::budget(const PhysicalDevice& device) const {
  if (!device.memory_budget) return device.info.memory;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = &budget;
  api_.get_memory_properties(device.handle, &memory);
  const uint32_t heap = device_heap(device.memory);
  const uint64_t used = budget.heapUsage[heap];
  const uint64_t most = budget.heapBudget[heap];
  return most > used ? most - used : 0;
}

}  // namespace qwench
