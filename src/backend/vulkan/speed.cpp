#include "backend/vulkan/speed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

namespace qwench {
namespace {

// Larger than any cache of a card, where that much fits.
constexpr uint64_t kBytes = uint64_t{256} << 20;
constexpr uint64_t kBytesInSoftware = uint64_t{32} << 20;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kReadGroups = 2048;
constexpr uint32_t kFmaGroups = 1024;
constexpr uint32_t kRounds = 4096;
constexpr uint32_t kRoundsInSoftware = 64;
constexpr double kFmaOperations = 2 * 16;
constexpr int kTries = 4;

/// Seconds that the commands take, the least of some tries after one.
double best_time(VulkanDevice& device, const std::function<void(VkCommandBuffer)>& record) {
  VkCommandBuffer commands = device.make_commands();
  device.begin(commands, false);
  record(commands);
  device.end(commands);
  double best = 1e30;
  for (int i = 0; i <= kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    device.submit(VulkanDevice::Queue::compute, commands);
    device.wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i > 0) best = std::min(best, took.count());
  }
  device.free_commands(commands);
  return best;
}

}  // namespace

DeviceSpeed measure_speed(const std::shared_ptr<VulkanDevice>& device, VulkanPipelines& pipelines) {
  const bool software = device->info().software();
  const uint64_t bytes = std::min(software ? kBytesInSoftware : kBytes, device->info().max_binding / 2);
  const auto from = device->make_buffer(bytes, BufferPlace::device, "measuring");
  const auto to = device->make_buffer(bytes, BufferPlace::device, "measuring");
  device->clear(*from);
  const BufferBinding bindings[] = {{0, from.get()}, {1, to.get()}};
  const VulkanApi& api = device->api();
  const auto dispatch = [&](VkCommandBuffer commands, std::string_view shader,
                            std::span<const uint32_t> arguments, uint32_t groups) {
    VkDescriptorSet set = pipelines.descriptors(bindings);
    api.cmd_bind_pipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines.pipeline(shader, {}));
    api.cmd_bind_descriptor_sets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines.layout(), 0, 1, &set, 0,
                                 nullptr);
    api.cmd_push_constants(commands, pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(arguments.size_bytes()), arguments.data());
    api.cmd_dispatch(commands, groups, 1, 1);
  };
  DeviceSpeed speed;
  const auto size = static_cast<double>(bytes);
  const std::array<uint32_t, 2> read{static_cast<uint32_t>(bytes / 16), kReadGroups * kThreads};
  speed.read_gb_per_s = size / 1e9 / best_time(*device, [&](VkCommandBuffer c) {
                          dispatch(c, "speed_read", read, kReadGroups);
                        });
  speed.copy_gb_per_s = 2 * size / 1e9 / best_time(*device, [&](VkCommandBuffer c) {
                          const VkBufferCopy copy{0, 0, bytes};
                          api.cmd_copy_buffer(c, from->handle(), to->handle(), 1, &copy);
                        });
  const std::array<uint32_t, 1> rounds{software ? kRoundsInSoftware : kRounds};
  speed.f32_gflop_per_s =
      kFmaOperations * rounds[0] * kFmaGroups * kThreads / 1e9 /
      best_time(*device, [&](VkCommandBuffer c) { dispatch(c, "speed_fma", rounds, kFmaGroups); });
  return speed;
}

}  // namespace qwench
