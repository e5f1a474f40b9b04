#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/thread_pool.h"

namespace qwench {

/// A device of this machine beside the CPU, as its driver describes it. Bytes.
struct DeviceInfo {
  int index = 0;            ///< the N of "vulkan:N"
  std::string name;         ///< "NVIDIA GeForce RTX 4090"
  std::string type;         ///< "discrete", "integrated", "virtual", "software" or "other"
  std::string driver;       ///< "radv Mesa 23.1.2"
  std::string api;          ///< "1.3.230"
  uint64_t memory = 0;      ///< of the largest heap that is the device's own
  uint64_t budget = 0;      ///< what the driver would give this process now (VK_EXT_memory_budget), or memory
  bool has_budget = false;  ///< the driver says so
  bool f16 = false;         ///< arithmetic in shaders; not needed here
  bool int8 = false;        ///< the same
  int subgroup = 0;         ///< invocations that run in step; not relied on
  bool copy_queue = false;  ///< a queue for copies alone
  uint64_t max_binding = 0;  ///< bytes of a buffer that a shader sees at once
  std::string unusable;      ///< why this backend cannot use it; empty where it can

  bool software() const { return type == "software"; }
};

/// On a device, q8_0 cells of the KV cache need heads of a multiple of so many elements: two scales share a
/// word.
inline constexpr int kDeviceQ8Elements = 64;
/// Throws Error (unsupported) for cells that a device's shaders do not read.
void check_device_cells(DType cell, int head_dim);

/// All devices that Vulkan has here. Throws Error (unsupported) where there is no Vulkan, or where this
/// program was built without it.
std::vector<DeviceInfo> vulkan_devices();

/// How a model is put on a device.
struct DeviceOptions {
  std::optional<DType> dtype;     ///< what weights are asked to be kept as; see vulkan_backend.h
  bool packed_bf16 = false;       ///< as EngineOptions::packed_bf16
  bool pack_later = false;        ///< as EngineOptions::quick_start
  std::optional<int> gpu_layers;  ///< layers from this one on are streamed to the device; absent: none
  uint64_t memory = 0;  ///< most bytes to take of the device's memory; 0: as many as its driver gives
};

/// The device that a name stands for: empty for the CPU. "auto" is a discrete GPU that can be used, then an
/// integrated one, else the CPU, never a software device, and looks for none where the system has no GPU's
/// driver. "vulkan" is the same but with others last, and never the CPU. Throws Error: invalid_argument for a
/// name that is none, unsupported where the device is not there or cannot be used, which names --device cpu.
std::optional<DeviceInfo> choose_device(const std::string& name);

/// The CPU's backend where there is no device. Throws Error (unsupported, out_of_memory). `pool` must outlive
/// the backend.
std::unique_ptr<Backend> make_backend(const std::optional<DeviceInfo>& device, const DeviceOptions& options,
                                      ThreadPool& pool);

}  // namespace qwench
