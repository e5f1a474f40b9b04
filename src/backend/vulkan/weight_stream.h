#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "backend/vulkan/vulkan_tensors.h"

namespace qwench {

/// A copy of a layer's weights to the device, as it was run; in the device's ticks.
struct StreamedCopy {
  int layer = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The layers that are not resident: their weights lie in the host's memory and are copied, by a queue of its
/// own where the device has one, into one of two slots, while the layer before computes from the other.
class WeightStream {
 public:
  WeightStream(std::shared_ptr<VulkanDevice> device, int resident_layers);
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  /// A weight that was loaded with a streamed layer, and outlives this.
  void add(const VulkanWeight& weight);
  /// Takes the memory of the slots, once. Throws Error (out_of_memory).
  void reserve(uint64_t slot_bytes);

  const VulkanBuffer& slot_of(int layer) const { return *slots_[index_of(layer)]; }

  /// Copies the layer to its slot once what was submitted from that slot is done, unless it is there. Throws
  /// Error (device_lost).
  void fetch(int layer);
  /// Submits commands that read the layer's slot, after it was fetched.
  void compute(int layer, VkCommandBuffer commands);

  uint64_t bytes_copied() const { return bytes_copied_; }
  /// Between these, copies are timed.
  void start_timing();
  std::vector<StreamedCopy> stop_timing();

 private:
  struct Layer {
    std::vector<const VulkanWeight*> weights;
    VkCommandBuffer copy = VK_NULL_HANDLE;
    bool timed = false;
  };
  size_t index_of(int layer) const { return static_cast<size_t>(layer - resident_layers_) % 2; }
  void record(int layer, Layer& entry, bool timed);

  std::shared_ptr<VulkanDevice> device_;
  const int resident_layers_;
  std::map<int, Layer> layers_;
  std::array<std::unique_ptr<VulkanBuffer>, 2> slots_;
  std::array<int, 2> content_{-1, -1};   // layers in the slots
  std::array<uint64_t, 2> fetched_{};    // the copies that brought them
  std::array<QueuePoint, 2> readers_{};  // when the last commands that read a slot are done
  VkSemaphore copied_ = VK_NULL_HANDLE;
  VkSemaphore computed_ = VK_NULL_HANDLE;
  uint64_t copies_ = 0;
  uint64_t computations_ = 0;
  uint64_t bytes_copied_ = 0;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  bool timing_ = false;
  std::vector<int> timed_layers_;
};

}  // namespace qwench
