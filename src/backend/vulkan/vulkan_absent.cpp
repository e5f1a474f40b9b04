// In place of the backend, where this program is built without glslc or the headers of Vulkan.
#include "backend/device.h"
#include "backend/vulkan/vulkan_backend.h"
#include "qwench/error.h"

namespace qwench {
namespace {

[[noreturn]] void fail() {
  throw Error(
      ErrorKind::unsupported,
      "this program was built without Vulkan: install glslc and libvulkan-dev and build it again, or use "
      "--device cpu");
}

}  // namespace

std::vector<DeviceInfo> vulkan_devices() { fail(); }
std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions&, ThreadPool&) { fail(); }
int vulkan_validation_messages() { return 0; }

}  // namespace qwench
