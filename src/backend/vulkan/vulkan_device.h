#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/vulkan/vulkan_instance.h"

namespace qwench {

class VulkanDevice;
class VulkanStaging;

/// Where a buffer lies.
enum class BufferPlace {
  device,    // the device's own memory; mapped only where the host sees all of it
  upload,    // written by the host in order, read by the device
  download,  // written by the device, read by the host
  pinned,    // the host's memory, which the device's copies read: weights that are streamed
};
inline constexpr uint32_t kBufferPlaces = 4;

/// Memory of a device, of which buffers take pieces; mapped where the host sees it.
class DeviceMemory {
 public:
  DeviceMemory(const VulkanDevice& device, VkDeviceMemory memory, uint64_t size, std::byte* mapped)
      : device_(device), memory_(memory), size_(size), mapped_(mapped) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  VkDeviceMemory handle() const { return memory_; }
  uint64_t size() const { return size_; }
  std::byte* mapped() const { return mapped_; }

 private:
  const VulkanDevice& device_;
  VkDeviceMemory memory_;
  uint64_t size_;
  std::byte* mapped_;
};

/// A storage buffer. Immovable; held by unique_ptr.
class VulkanBuffer {
 public:
  ~VulkanBuffer();
  VulkanBuffer(const VulkanBuffer&) = delete;
  VulkanBuffer& operator=(const VulkanBuffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  uint64_t size() const { return size_; }
  uint64_t id() const { return id_; }            ///< never that of another buffer
  std::byte* mapped() const { return mapped_; }  ///< null where the host does not see it

 private:
  friend class VulkanDevice;
  VulkanBuffer() = default;

  std::shared_ptr<const VulkanDevice> device_;
  std::shared_ptr<DeviceMemory> memory_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  uint64_t size_ = 0;
  uint64_t id_ = 0;
  uint64_t counted_ = 0;  // of the device's own memory
  uint64_t arrival_ = 0;  // of what was staged for it last, on VulkanStaging's line
  std::byte* mapped_ = nullptr;
};

/// What is done with a device, counted.
struct VulkanCounts {
  int64_t submits = 0;
  int64_t read_backs = 0;  // times the host waited for results
  int64_t read_back_bytes = 0;
};

/// A point on the line of what a queue has done: reached when `semaphore`, a timeline, has this value.
struct QueuePoint {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

/// A logical device with its queues and its memory. Used by one thread at a time, but for its end.
class VulkanDevice : public std::enable_shared_from_this<VulkanDevice> {
 public:
  struct Options {
    uint64_t memory_limit = 0;   // most bytes of the device's own memory; 0: no limit
    bool hides_memory = false;   // as if the host saw none of it: what a discrete card is like
    uint64_t binding_limit = 0;  // most bytes that a shader sees at once; 0: the device's
  };

  /// Opens the device of this index. Throws Error (unsupported, out_of_memory).
  static std::shared_ptr<VulkanDevice> open(int index, const Options& options);
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  const VulkanApi& api() const { return instance_->api(); }
  VkDevice handle() const { return device_; }
  const PhysicalDevice& physical() const { return physical_; }
  const DeviceInfo& info() const { return physical_.info; }
  const VkPhysicalDeviceLimits& limits() const { return physical_.properties.limits; }

  /// At least `size` bytes for `purpose`. Throws Error (out_of_memory) that says what for.
  std::unique_ptr<VulkanBuffer> make_buffer(uint64_t size, BufferPlace place, const std::string& purpose);
  /// Bytes of the device's own memory that were taken and not given back.
  uint64_t used() const { return used_; }

  /// Writes to a buffer that no submitted command uses; where the host does not see it, by the copy queue,
  /// for which what is computed from then on waits. Throws Error.
  void write(VulkanBuffer& to, uint64_t offset, std::span<const std::byte> bytes);
  /// Fills a buffer with zeros, and waits. Throws Error.
  void clear(VulkanBuffer& buffer);

  VkCommandBuffer make_commands();
  void free_commands(VkCommandBuffer commands);
  /// A buffer of commands that are submitted once or again and again.
  void begin(VkCommandBuffer commands, bool once) const;
  void end(VkCommandBuffer commands) const;

  enum class Queue { compute, copy };
  /// Hands commands to a queue, which begins when it has reached `after`, if any, and reaches `reached` with
  /// them. Throws Error (device_lost, out_of_memory).
  void submit(Queue queue, VkCommandBuffer commands, QueuePoint after = {}, QueuePoint reached = {});
  /// Waits for all that was submitted to the compute queue. Throws Error (device_lost).
  void wait();
  VkSemaphore make_timeline();
  void destroy_timeline(VkSemaphore semaphore);
  /// Whether copies have a queue of their own.
  bool copies_apart() const { return copy_queue_ != compute_queue_; }
  VkCommandBuffer make_copy_commands();

  VulkanCounts& counts() { return counts_; }

  /// Throws Error where `result` is a failure of `what`.
  void check(VkResult result, const std::string& what) const;
  /// Makes the submit after `submits` more fail as a lost device's, or as one without memory: for tests. -1:
  /// never.
  void fail_after(int64_t submits, VkResult result);
  bool lost() const { return lost_; }

 private:
  friend class VulkanBuffer;
  VulkanDevice(std::shared_ptr<VulkanInstance> instance, const PhysicalDevice& physical,
               const Options& options);
  void create();
  uint32_t memory_type(uint32_t allowed, BufferPlace place) const;
  std::shared_ptr<DeviceMemory> take_memory(uint64_t size, uint32_t type, const std::string& purpose);
  void read_failure_from_environment();

  struct Chunk {
    std::shared_ptr<DeviceMemory> memory;
    uint64_t used = 0;
    uint64_t next_size = 0;
  };

  std::shared_ptr<VulkanInstance> instance_;
  PhysicalDevice physical_;
  const Options options_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue compute_queue_ = VK_NULL_HANDLE;
  VkQueue copy_queue_ = VK_NULL_HANDLE;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkCommandPool copy_pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::vector<Chunk> chunks_;  // [places, memory types]
  std::unique_ptr<VulkanStaging> staging_;
  uint64_t arrived_ = 0;  // what the compute queue has waited for, on VulkanStaging's line
  mutable std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> next_id_{1};
  VulkanCounts counts_;
  int64_t submits_left_ = -1;
  VkResult failure_ = VK_SUCCESS;
  mutable bool lost_ = false;
};

}  // namespace qwench
