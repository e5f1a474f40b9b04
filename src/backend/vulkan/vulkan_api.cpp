#include "backend/vulkan/vulkan_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "qwench/error.h"

namespace qwench {
namespace {

constexpr const char* kLibrary = "libvulkan.so.1";

template <typename F>
void find(const VulkanApi& api, VkInstance instance, const char* name, F& function, bool required = true) {
  function = reinterpret_cast<F>(api.get_instance_proc_addr(instance, name));
  if (function == nullptr && required)
    throw Error(ErrorKind::unsupported,
                fmt::format("the Vulkan loader has no function {}; install a newer one", name));
}

}  // namespace

VulkanApi VulkanApi::open() {
  // Never closed: drivers do not like to be unloaded.
  static void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format(
            "there is no Vulkan loader ({}) on this machine; install it (libvulkan1) with a driver, or "
            "use --device cpu",
            kLibrary));
  }
  VulkanApi api;
  api.get_instance_proc_addr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (api.get_instance_proc_addr == nullptr)
    throw Error(ErrorKind::unsupported, fmt::format("{} is no Vulkan loader", kLibrary));
  find(api, nullptr, "vkCreateInstance", api.create_instance);
  find(api, nullptr, "vkEnumerateInstanceVersion", api.enumerate_instance_version);
  find(api, nullptr, "vkEnumerateInstanceLayerProperties", api.enumerate_instance_layers);
  find(api, nullptr, "vkEnumerateInstanceExtensionProperties", api.enumerate_instance_extensions);
  return api;
}

void VulkanApi::load(VkInstance instance) {
  find(*this, instance, "vkDestroyInstance", destroy_instance);
  find(*this, instance, "vkCreateDebugUtilsMessengerEXT", create_debug_messenger, false);
  find(*this, instance, "vkDestroyDebugUtilsMessengerEXT", destroy_debug_messenger, false);
  find(*this, instance, "vkEnumeratePhysicalDevices", enumerate_physical_devices);
  find(*this, instance, "vkEnumerateDeviceExtensionProperties", enumerate_device_extensions);
  find(*this, instance, "vkGetPhysicalDeviceProperties2", get_properties);
  find(*this, instance, "vkGetPhysicalDeviceFeatures2", get_features);
  find(*this, instance, "vkGetPhysicalDeviceMemoryProperties2", get_memory_properties);
  find(*this, instance, "vkGetPhysicalDeviceQueueFamilyProperties", get_queue_families);
  find(*this, instance, "vkCreateDevice", create_device);
  find(*this, instance, "vkDestroyDevice", destroy_device);
  find(*this, instance, "vkGetDeviceQueue", get_device_queue);
  find(*this, instance, "vkQueueSubmit", queue_submit);
  find(*this, instance, "vkDeviceWaitIdle", device_wait_idle);
  find(*this, instance, "vkAllocateMemory", allocate_memory);
  find(*this, instance, "vkFreeMemory", free_memory);
  find(*this, instance, "vkMapMemory", map_memory);
  find(*this, instance, "vkCreateBuffer", create_buffer);
  find(*this, instance, "vkDestroyBuffer", destroy_buffer);
  find(*this, instance, "vkGetBufferMemoryRequirements", get_buffer_memory_requirements);
  find(*this, instance, "vkBindBufferMemory", bind_buffer_memory);
  find(*this, instance, "vkCreateFence", create_fence);
  find(*this, instance, "vkDestroyFence", destroy_fence);
  find(*this, instance, "vkResetFences", reset_fences);
  find(*this, instance, "vkWaitForFences", wait_for_fences);
  find(*this, instance, "vkCreateSemaphore", create_semaphore);
  find(*this, instance, "vkDestroySemaphore", destroy_semaphore);
  find(*this, instance, "vkWaitSemaphores", wait_semaphores);
  find(*this, instance, "vkCreateCommandPool", create_command_pool);
  find(*this, instance, "vkDestroyCommandPool", destroy_command_pool);
  find(*this, instance, "vkAllocateCommandBuffers", allocate_command_buffers);
  find(*this, instance, "vkFreeCommandBuffers", free_command_buffers);
  find(*this, instance, "vkBeginCommandBuffer", begin_command_buffer);
  find(*this, instance, "vkEndCommandBuffer", end_command_buffer);
  find(*this, instance, "vkCreateDescriptorSetLayout", create_descriptor_set_layout);
  find(*this, instance, "vkDestroyDescriptorSetLayout", destroy_descriptor_set_layout);
  find(*this, instance, "vkCreateDescriptorPool", create_descriptor_pool);
  find(*this, instance, "vkDestroyDescriptorPool", destroy_descriptor_pool);
  find(*this, instance, "vkAllocateDescriptorSets", allocate_descriptor_sets);
  find(*this, instance, "vkUpdateDescriptorSets", update_descriptor_sets);
  find(*this, instance, "vkCreatePipelineLayout", create_pipeline_layout);
  find(*this, instance, "vkDestroyPipelineLayout", destroy_pipeline_layout);
  find(*this, instance, "vkCreateShaderModule", create_shader_module);
  find(*this, instance, "vkDestroyShaderModule", destroy_shader_module);
  find(*this, instance, "vkCreateComputePipelines", create_compute_pipelines);
  find(*this, instance, "vkDestroyPipeline", destroy_pipeline);
  find(*this, instance, "vkCreatePipelineCache", create_pipeline_cache);
  find(*this, instance, "vkDestroyPipelineCache", destroy_pipeline_cache);
  find(*this, instance, "vkGetPipelineCacheData", get_pipeline_cache_data);
  find(*this, instance, "vkCreateQueryPool", create_query_pool);
  find(*this, instance, "vkDestroyQueryPool", destroy_query_pool);
  find(*this, instance, "vkGetQueryPoolResults", get_query_pool_results);
  find(*this, instance, "vkCmdResetQueryPool", cmd_reset_query_pool);
  find(*this, instance, "vkCmdWriteTimestamp", cmd_write_timestamp);
  find(*this, instance, "vkCmdBindPipeline", cmd_bind_pipeline);
  find(*this, instance, "vkCmdBindDescriptorSets", cmd_bind_descriptor_sets);
  find(*this, instance, "vkCmdPushConstants", cmd_push_constants);
  find(*this, instance, "vkCmdDispatch", cmd_dispatch);
  find(*this, instance, "vkCmdPipelineBarrier", cmd_pipeline_barrier);
  find(*this, instance, "vkCmdCopyBuffer", cmd_copy_buffer);
  find(*this, instance, "vkCmdFillBuffer", cmd_fill_buffer);
}

}  // namespace qwench
