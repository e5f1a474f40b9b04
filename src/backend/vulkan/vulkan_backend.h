#pragma once

#include <memory>
#include <optional>

#include "backend/backend.h"
#include "core/thread_pool.h"

namespace qwench {

struct VulkanOptions {
  int index = 0;                  ///< of vulkan_devices()
  bool keeps_f32 = false;         ///< f32 matrices stay f32 instead of becoming f16
  std::optional<int> gpu_layers;  ///< layers from this one on are streamed; absent: none
  uint64_t memory = 0;            ///< most bytes of the device's memory; 0: no limit but the driver's
  // For tests, which have one device and stand for others:
  bool hides_memory = false;   ///< as if the host could not write to the device's memory
  uint64_t binding_limit = 0;  ///< most bytes of a buffer that a shader sees at once; 0: the device's
};

/// A device of Vulkan. Matrices are kept as f16 (bf16 converted), or q8_0, q4_0, q4_1, q4_k and q6_k as
/// stored, other types as q8_0 or f16 (weight_layout.h); vectors, activations and sums are f32. Operations
/// are collected, recorded once for each shape of a step, and submitted together when results are read.
/// `pool`, which weights are laid out by, must outlive the backend. Throws Error: unsupported where there is
/// no such device or this program was built without Vulkan, out_of_memory.
std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options, ThreadPool& pool);

/// Warnings and errors of Vulkan's validation layers in this process so far.
int vulkan_validation_messages();

}  // namespace qwench
