#include "backend/vulkan/vulkan_staging.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace qwench {

VulkanStaging::VulkanStaging(VulkanDevice& device, std::unique_ptr<VulkanBuffer> buffer)
    : device_(device), buffer_(std::move(buffer)), timeline_(device_.make_timeline()) {}

VulkanStaging::~VulkanStaging() { device_.destroy_timeline(timeline_); }

VkResult VulkanStaging::wait(uint64_t value) const {
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &timeline_;
  wait.pValues = &value;
  return device_.api().wait_semaphores(device_.handle(), &wait, std::numeric_limits<uint64_t>::max());
}

void VulkanStaging::write(const VulkanBuffer& to, uint64_t offset, std::span<const std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const size_t half = copies_ % 2;
    // What this half held before was the copy before the last one.
    if (copies_ >= 2) device_.check(wait(copies_ - 1), "loading weights");
    const size_t count = std::min<size_t>(bytes.size() - done, kHalf);
    std::memcpy(buffer_->mapped() + half * kHalf, bytes.data() + done, count);
    VkCommandBuffer& commands = commands_[half];
    if (commands == VK_NULL_HANDLE) commands = device_.make_copy_commands();
    device_.begin(commands, true);
    const VkBufferCopy copy{half * kHalf, offset + done, count};
    device_.api().cmd_copy_buffer(commands, buffer_->handle(), to.handle(), 1, &copy);
    device_.end(commands);
    device_.submit(VulkanDevice::Queue::copy, commands, {}, {timeline_, copies_ + 1});
    ++copies_;
    done += count;
  }
}

}  // namespace qwench
