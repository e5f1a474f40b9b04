#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/vulkan/vulkan_device.h"
#include "backend/vulkan/vulkan_staging.h"
#include "qwench/error.h"

namespace qwench {
namespace {

// Memory is taken from the driver in chunks that grow up to this size; larger buffers have their own.
constexpr uint64_t kLargestChunk = uint64_t{64} << 20;
constexpr uint64_t kFirstChunk = uint64_t{1} << 20;

struct Wish {
  VkMemoryPropertyFlags needed;
  VkMemoryPropertyFlags liked;
};

Wish wish_of(BufferPlace place) {
  constexpr VkMemoryPropertyFlags kSeen =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  switch (place) {
    case BufferPlace::device:
      return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
    case BufferPlace::upload:
      return {kSeen, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    case BufferPlace::download:
      return {kSeen, VK_MEMORY_PROPERTY_HOST_CACHED_BIT};
    case BufferPlace::pinned:
      return {kSeen, 0};
  }
  return {kSeen, 0};
}

}  // namespace

DeviceMemory::~DeviceMemory() { device_.api().free_memory(device_.handle(), memory_, nullptr); }

VulkanBuffer::~VulkanBuffer() {
  // Of a model whose loading failed, weights may still be on their way.
  if (arrival_ > 0) device_->staging_->wait(arrival_);
  if (buffer_ != VK_NULL_HANDLE) device_->api().destroy_buffer(device_->handle(), buffer_, nullptr);
  device_->used_ -= counted_;
}

uint32_t VulkanDevice::memory_type(uint32_t allowed, BufferPlace place) const {
  const Wish wish = wish_of(place);
  const VkPhysicalDeviceMemoryProperties& memory = physical_.memory;
  uint32_t best = memory.memoryTypeCount;
  int best_score = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((allowed & (1U << i)) == 0 || (flags & wish.needed) != wish.needed) continue;
    const VkMemoryHeap& heap = memory.memoryHeaps[memory.memoryTypes[i].heapIndex];
    const bool own = (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
    int score = (flags & wish.liked) != 0 ? 4 : 0;
    // What lies in the host's memory should not use up the device's.
    if ((place == BufferPlace::pinned || place == BufferPlace::download) && !own) score += 2;
    if (score > best_score) {
      best = i;
      best_score = score;
    }
  }
  if (best == memory.memoryTypeCount)
    throw Error(ErrorKind::unsupported,
                fmt::format("{} has no memory of a kind that is needed; use --device cpu", info().name));
  return best;
}

std::shared_ptr<DeviceMemory> VulkanDevice::take_memory(uint64_t size, uint32_t type,
                                                        const std::string& purpose) {
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = size;
  allocate.memoryTypeIndex = type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  check(api().allocate_memory(device_, &allocate, nullptr, &memory),
        fmt::format("{} ({} MB)", purpose, size >> 20));
  std::byte* mapped = nullptr;
  const VkMemoryPropertyFlags flags = physical_.memory.memoryTypes[type].propertyFlags;
  if ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0 &&
      (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0) {
    void* address = nullptr;
    const VkResult result = api().map_memory(device_, memory, 0, VK_WHOLE_SIZE, 0, &address);
    if (result != VK_SUCCESS) {
      api().free_memory(device_, memory, nullptr);
      check(result, purpose);
    }
    mapped = static_cast<std::byte*>(address);
  }
  return std::make_shared<DeviceMemory>(*this, memory, size, mapped);
}

std::unique_ptr<VulkanBuffer> VulkanDevice::make_buffer(uint64_t size, BufferPlace place,
                                                        const std::string& purpose) {
  constexpr uint64_t kLargest = uint64_t{1} << 40;
  size = std::max<uint64_t>((size + 255) / 256 * 256, 256);
  if (size > kLargest)
    throw Error(ErrorKind::out_of_memory, fmt::format("{} bytes were asked for {}", size, purpose));
  std::unique_ptr<VulkanBuffer> buffer(new VulkanBuffer());
  buffer->device_ = shared_from_this();
  buffer->size_ = size;
  buffer->id_ = next_id_++;
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = size;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  create.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  const std::array<uint32_t, 2> families{physical_.compute_family, physical_.copy_family};
  if (physical_.copy_family != VK_QUEUE_FAMILY_IGNORED) {
    create.sharingMode = VK_SHARING_MODE_CONCURRENT;
    create.queueFamilyIndexCount = 2;
    create.pQueueFamilyIndices = families.data();
  }
  check(api().create_buffer(device_, &create, nullptr, &buffer->buffer_), purpose);
  VkMemoryRequirements needs{};
  api().get_buffer_memory_requirements(device_, buffer->buffer_, &needs);
  const uint32_t type = memory_type(needs.memoryTypeBits, place);

  if (place == BufferPlace::device && options_.memory_limit > 0 &&
      used_ + needs.size > options_.memory_limit) {
    throw Error(
        ErrorKind::out_of_memory,
        fmt::format(
            "{} does not fit the {} MB of {} that may be used: {} MB are taken and {} MB more are needed; "
            "allow more (--vram), or use a smaller model, a shorter context (-c) or --device cpu",
            purpose, options_.memory_limit >> 20, info().name, used_ >> 20, needs.size >> 20));
  }
  std::shared_ptr<DeviceMemory> memory;
  uint64_t offset = 0;
  Chunk& chunk = chunks_[static_cast<uint32_t>(place) * physical_.memory.memoryTypeCount + type];
  const uint64_t at = (chunk.used + needs.alignment - 1) / needs.alignment * needs.alignment;
  if (needs.size > kLargestChunk / 4) {
    memory = take_memory(needs.size, type, purpose);
  } else if (chunk.memory && at + needs.size <= chunk.memory->size()) {
    memory = chunk.memory;
    offset = at;
    chunk.used = at + needs.size;
  } else {
    chunk.next_size = std::clamp(chunk.next_size * 2, kFirstChunk, kLargestChunk);
    const uint64_t bytes = std::max(chunk.next_size, needs.size);
    chunk.memory = memory = take_memory(bytes, type, purpose);
    chunk.used = needs.size;
  }
  check(api().bind_buffer_memory(device_, buffer->buffer_, memory->handle(), offset), purpose);
  const bool hidden = place == BufferPlace::device && options_.hides_memory;
  if (memory->mapped() != nullptr && !hidden) buffer->mapped_ = memory->mapped() + offset;
  buffer->memory_ = std::move(memory);
  if (place == BufferPlace::device) used_ += buffer->counted_ = needs.size;
  return buffer;
}

}  // namespace qwench
