#include "backend/vulkan/vulkan_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "backend/vulkan/vulkan_staging.h"
#include "qwench/error.h"

namespace qwench {
namespace {

VkMemoryBarrier all_writes() {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  return barrier;
}

std::array<VkDeviceQueueCreateInfo, 2> queue_requests(const PhysicalDevice& physical, const float* priorities,
                                                      uint32_t& count) {
  std::array<VkDeviceQueueCreateInfo, 2> queues{};
  for (VkDeviceQueueCreateInfo& queue : queues) {
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = priorities;
  }
  queues[0].queueFamilyIndex = physical.compute_family;
  count = 1;
  if (physical.copy_family != VK_QUEUE_FAMILY_IGNORED) {
    queues[1].queueFamilyIndex = physical.copy_family;
    count = 2;
  } else if (physical.compute_queues > 1) {
    queues[0].queueCount = 2;
  }
  return queues;
}

}  // namespace

std::shared_ptr<VulkanDevice> VulkanDevice::open(int index, const Options& options) {
  std::shared_ptr<VulkanInstance> instance = VulkanInstance::get();
  const auto& devices = instance->devices();
  if (index < 0 || static_cast<size_t>(index) >= devices.size()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("there is no device vulkan:{}: Vulkan has {} here; qwench devices lists them",
                            index, devices.size()));
  }
  const PhysicalDevice& physical = devices[static_cast<size_t>(index)];
  if (!physical.info.unusable.empty()) {
    throw Error(ErrorKind::unsupported, fmt::format("{} cannot be used: {}; use --device cpu",
                                                    physical.info.name, physical.info.unusable));
  }
  std::shared_ptr<VulkanDevice> device(new VulkanDevice(instance, physical, options));
  device->create();
  return device;
}

VulkanDevice::VulkanDevice(std::shared_ptr<VulkanInstance> instance, const PhysicalDevice& physical,
                           const Options& options)
    : instance_(std::move(instance)),
      physical_(physical),
      options_(options),
      chunks_(kBufferPlaces * physical.memory.memoryTypeCount) {
  if (options.binding_limit > 0)
    physical_.info.max_binding = std::min(physical_.info.max_binding, options.binding_limit);
  read_failure_from_environment();
}

void VulkanDevice::create() {
  const std::array<float, 2> priorities{1.0F, 1.0F};
  uint32_t families = 0;
  const auto queues = queue_requests(physical_, priorities.data(), families);
  std::vector<const char*> extensions;
  if (physical_.portability_subset) extensions.push_back("VK_KHR_portability_subset");
  VkPhysicalDeviceVulkan12Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features.timelineSemaphore = VK_TRUE;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features;
  create.queueCreateInfoCount = families;
  create.pQueueCreateInfos = queues.data();
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  check(api().create_device(physical_.handle, &create, nullptr, &device_), "opening the device");
  api().get_device_queue(device_, physical_.compute_family, 0, &compute_queue_);
  const bool apart = families == 2;
  const uint32_t copy_family = apart ? physical_.copy_family : physical_.compute_family;
  api().get_device_queue(device_, copy_family, !apart && physical_.compute_queues > 1 ? 1 : 0, &copy_queue_);

  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = physical_.compute_family;
  check(api().create_command_pool(device_, &pool, nullptr, &command_pool_), "making commands");
  pool.queueFamilyIndex = copy_family;
  check(api().create_command_pool(device_, &pool, nullptr, &copy_pool_), "making commands");
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check(api().create_fence(device_, &fence, nullptr, &fence_), "making a fence");
}

VulkanDevice::~VulkanDevice() {
  if (device_ == VK_NULL_HANDLE) return;
  api().device_wait_idle(device_);
  staging_.reset();
  chunks_.clear();
  if (fence_ != VK_NULL_HANDLE) api().destroy_fence(device_, fence_, nullptr);
  if (command_pool_ != VK_NULL_HANDLE) api().destroy_command_pool(device_, command_pool_, nullptr);
  if (copy_pool_ != VK_NULL_HANDLE) api().destroy_command_pool(device_, copy_pool_, nullptr);
  api().destroy_device(device_, nullptr);
}

void VulkanDevice::check(VkResult result, const std::string& what) const {
  if (result == VK_SUCCESS) return;
  if (result == VK_ERROR_DEVICE_LOST) {
    lost_ = true;
    throw Error(
        ErrorKind::device_lost,
        fmt::format("{} was lost while {}: its driver gave up or was reset; the model must be loaded again",
                    info().name, what));
  }
  const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  throw Error(
      memory ? ErrorKind::out_of_memory : ErrorKind::unsupported,
      memory ? fmt::format("{} has no memory left for {}; use a smaller model, --gpu-layers, or --device cpu",
                           info().name, what)
             : fmt::format("{} failed in {} (Vulkan's error {}); use --device cpu", info().name, what,
                           static_cast<int>(result)));
}

void VulkanDevice::read_failure_from_environment() {
  // "lost:12" or "memory:12": what the tests of failures inject, once a process.
  static std::string done;
  const char* value = std::getenv("QWENCH_VULKAN_FAIL");
  if (value == nullptr || done == value) return;
  done = value;
  const std::string_view text = value;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return;
  fail_after(std::strtoll(value + colon + 1, nullptr, 10),
             text.starts_with("lost") ? VK_ERROR_DEVICE_LOST : VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

void VulkanDevice::fail_after(int64_t submits, VkResult result) {
  submits_left_ = submits;
  failure_ = result;
}

VkCommandBuffer VulkanDevice::make_commands() {
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = command_pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(api().allocate_command_buffers(device_, &allocate, &commands), "making commands");
  return commands;
}

VkCommandBuffer VulkanDevice::make_copy_commands() {
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = copy_pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(api().allocate_command_buffers(device_, &allocate, &commands), "making commands");
  return commands;
}

void VulkanDevice::free_commands(VkCommandBuffer commands) {
  if (commands != VK_NULL_HANDLE) api().free_command_buffers(device_, command_pool_, 1, &commands);
}

void VulkanDevice::begin(VkCommandBuffer commands, bool once) const {
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0;
  check(api().begin_command_buffer(commands, &begin), "recording commands");
}

void VulkanDevice::end(VkCommandBuffer commands) const {
  check(api().end_command_buffer(commands), "recording commands");
}

void VulkanDevice::submit(Queue queue, VkCommandBuffer commands, QueuePoint after, QueuePoint reached) {
  if (submits_left_ >= 0 && submits_left_-- == 0) check(failure_, "computing (an injected failure)");
  if (lost_) check(VK_ERROR_DEVICE_LOST, "computing");
  constexpr std::array<VkPipelineStageFlags, 2> stages{VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                                       VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.pNext = &timeline;
  submit.commandBufferCount = commands == VK_NULL_HANDLE ? 0 : 1;
  submit.pCommandBuffers = &commands;
  std::array<VkSemaphore, 2> semaphores{};
  std::array<uint64_t, 2> values{};
  uint32_t waits = 0;
  const auto wait_for = [&](const QueuePoint& point) {
    semaphores[waits] = point.semaphore;
    values[waits++] = point.value;
  };
  if (after.semaphore != VK_NULL_HANDLE) wait_for(after);
  const QueuePoint arrival = staging_ ? staging_->arrival() : QueuePoint{};
  if (queue == Queue::compute && arrival.value > arrived_) wait_for(arrival);
  submit.waitSemaphoreCount = timeline.waitSemaphoreValueCount = waits;
  submit.pWaitSemaphores = semaphores.data();
  submit.pWaitDstStageMask = stages.data();
  timeline.pWaitSemaphoreValues = values.data();
  if (reached.semaphore != VK_NULL_HANDLE) {
    submit.signalSemaphoreCount = timeline.signalSemaphoreValueCount = 1;
    submit.pSignalSemaphores = &reached.semaphore;
    timeline.pSignalSemaphoreValues = &reached.value;
  }
  ++counts_.submits;
  check(api().queue_submit(queue == Queue::copy ? copy_queue_ : compute_queue_, 1, &submit, VK_NULL_HANDLE),
        "computing");
  if (queue == Queue::compute) arrived_ = std::max(arrived_, arrival.value);
}

void VulkanDevice::wait() {
  // A submit of nothing: its fence is signalled when all before it is done.
  check(api().queue_submit(compute_queue_, 0, nullptr, fence_), "computing");
  const VkResult result =
      api().wait_for_fences(device_, 1, &fence_, VK_TRUE, std::numeric_limits<uint64_t>::max());
  check(result, "computing");
  check(api().reset_fences(device_, 1, &fence_), "computing");
}

VkSemaphore VulkanDevice::make_timeline() {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  check(api().create_semaphore(device_, &create, nullptr, &semaphore), "making a semaphore");
  return semaphore;
}

void VulkanDevice::destroy_timeline(VkSemaphore semaphore) {
  if (semaphore != VK_NULL_HANDLE) api().destroy_semaphore(device_, semaphore, nullptr);
}

void VulkanDevice::write(VulkanBuffer& to, uint64_t offset, std::span<const std::byte> bytes) {
  if (to.mapped() != nullptr) {
    std::memcpy(to.mapped() + offset, bytes.data(), bytes.size());
    return;
  }
  if (!staging_) {
    auto buffer = make_buffer(2 * VulkanStaging::kHalf, BufferPlace::pinned, "loading weights");
    buffer->device_ = std::shared_ptr<const VulkanDevice>(std::shared_ptr<void>(), this);  // owns nothing
    staging_ = std::make_unique<VulkanStaging>(*this, std::move(buffer));
  }
  staging_->write(to, offset, bytes);
  to.arrival_ = staging_->arrival().value;
}

void VulkanDevice::clear(VulkanBuffer& buffer) {
  if (buffer.mapped() != nullptr) {
    std::memset(buffer.mapped(), 0, buffer.size());
    return;
  }
  VkCommandBuffer commands = make_commands();
  begin(commands, true);
  api().cmd_fill_buffer(commands, buffer.handle(), 0, VK_WHOLE_SIZE, 0);
  const VkMemoryBarrier barrier = all_writes();
  api().cmd_pipeline_barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0,
                             1, &barrier, 0, nullptr, 0, nullptr);
  end(commands);
  submit(Queue::compute, commands);
  wait();
  free_commands(commands);
}

}  // namespace qwench
