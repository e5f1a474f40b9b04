#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/vulkan/vulkan_pipelines.h"

namespace qwench {

/// Measures what the device reads, copies and computes at best, the best of some tries of some milliseconds.
/// Throws Error (out_of_memory).
DeviceSpeed measure_speed(const std::shared_ptr<VulkanDevice>& device, VulkanPipelines& pipelines);

}  // namespace qwench
