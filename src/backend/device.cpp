#include "backend/device.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "kernels/byte_rows.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr std::string_view kVulkan = "vulkan";

/// Whether the system has a driver's node for any GPU: without one there is no use in starting Vulkan, whose
/// software devices take memory.
bool may_have_gpu() {
#ifdef __linux__
  std::error_code error;
  for (const char* node : {"/dev/dri", "/dev/nvidiactl", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"}) {
    if (std::filesystem::exists(node, error)) return true;
  }
  return false;
#else
  return true;
#endif
}

/// The first of the best type, among those that can be used.
std::optional<DeviceInfo> best(const std::vector<DeviceInfo>& devices,
                               std::span<const std::string_view> types) {
  for (const std::string_view type : types) {
    for (const DeviceInfo& device : devices) {
      if (device.type == type && device.unusable.empty()) return device;
    }
  }
  return std::nullopt;
}

std::optional<DeviceInfo> automatic() {
  constexpr std::string_view kTypes[] = {"discrete", "integrated"};
  if (!may_have_gpu()) return std::nullopt;
  try {
    return best(vulkan_devices(), kTypes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return std::nullopt;
  }
}

DeviceInfo first_vulkan() {
  constexpr std::string_view kTypes[] = {"discrete", "integrated", "virtual", "other", "software"};
  const std::vector<DeviceInfo> devices = vulkan_devices();
  if (devices.empty())
    throw Error(ErrorKind::unsupported,
                "Vulkan has no device here; install a driver (mesa-vulkan-drivers has one in "
                "software), or use --device cpu");
  if (const auto found = best(devices, kTypes)) return *found;
  throw Error(ErrorKind::unsupported,
              fmt::format("{} cannot be used: {}; use --device cpu", devices[0].name, devices[0].unusable));
}

DeviceInfo numbered_vulkan(int index) {
  const std::vector<DeviceInfo> devices = vulkan_devices();
  if (index < 0 || static_cast<size_t>(index) >= devices.size()) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format(
            "there is no device vulkan:{}: Vulkan has {} here; qwench devices lists them, and --device cpu "
            "needs none",
            index, devices.size()));
  }
  const DeviceInfo& device = devices[static_cast<size_t>(index)];
  if (!device.unusable.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} cannot be used: {}; use --device cpu", device.name, device.unusable));
  }
  return device;
}

}  // namespace

std::optional<DeviceInfo> choose_device(const std::string& name) {
  if (name.empty() || name == "cpu") return std::nullopt;
  if (name == "auto") return automatic();
  if (name == kVulkan) return first_vulkan();
  if (name.starts_with("vulkan:")) {
    int index = 0;
    const char* begin = name.data() + kVulkan.size() + 1;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && stop == end && begin != end) return numbered_vulkan(index);
  }
  throw Error(ErrorKind::invalid_argument,
              fmt::format("there is no device '{}'; expected auto, cpu, vulkan or vulkan:N", name));
}

std::unique_ptr<Backend> make_backend(const std::optional<DeviceInfo>& device, const DeviceOptions& options,
                                      ThreadPool& pool) {
  if (!device)
    return make_cpu_backend(pool, {options.packed_bf16, options.pack_later && !options.packed_bf16});
  if (options.packed_bf16) {
    throw Error(ErrorKind::unsupported,
                "weights packed as bf16p are for the CPU alone; choose another --dtype, or --device cpu");
  }
  if (activation_bits() == 8) {
    throw Error(
        ErrorKind::unsupported,
        "activations of 8 bits are for the CPU alone; leave out --activation-bits 8, or choose --device "
        "cpu");
  }
  VulkanOptions vulkan;
  vulkan.index = device->index;
  vulkan.keeps_f32 = options.dtype == DType::f32;
  vulkan.gpu_layers = options.gpu_layers;
  vulkan.memory = options.memory;
  return make_vulkan_backend(vulkan, pool);
}

void check_device_cells(DType cell, int head_dim) {
  const bool plain = cell == DType::f16 || cell == DType::f32 || cell == DType::bf16;
  if (!plain && cell != DType::q8_0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the cells of the KV cache cannot be {} on a Vulkan device; use --kv-dtype f16, "
                            "f32, bf16 or q8_0, or --device cpu",
                            name(cell)));
  }
  if (!plain && head_dim % kDeviceQ8Elements != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("q8_0 cells of the KV cache do not run on a Vulkan device with heads of {} "
                            "elements, which are no multiple of {}; use --kv-dtype f16, or --device cpu",
                            head_dim, kDeviceQ8Elements));
  }
}

}  // namespace qwench
