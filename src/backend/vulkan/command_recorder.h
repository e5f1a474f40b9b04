#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/vulkan/operations.h"
#include "backend/vulkan/vulkan_pipelines.h"
#include "backend/vulkan/weight_stream.h"

namespace qwench {

/// Commands that are submitted together.
struct CommandSegment {
  static constexpr int kNoLayer = -1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  int streamed_layer = kNoLayer;  // whose slot they read
};

/// Which timestamps stand around an operation.
struct OperationQueries {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool fused = false;  // computed by the operation before it
};

/// Turns operations into commands: chooses kernels and their sizes, fuses neighbours (norm, rotation and
/// store of keys and values; addition and norm), and sets barriers between them.
class CommandRecorder {
 public:
  struct Targets {
    const VulkanBuffer* step = nullptr;
    const VulkanBuffer* results = nullptr;  // ids, largest elements, or rows of a matrix
    const VulkanBuffer* parts = nullptr;    // attention's parts; null where no operation has any
    VkQueryPool queries = VK_NULL_HANDLE;   // of 2 timestamps an operation; null: none are written
  };

  CommandRecorder(std::shared_ptr<VulkanDevice> device, VulkanPipelines& pipelines,
                  const WeightStream* stream)
      : device_(std::move(device)), pipelines_(pipelines), stream_(stream) {}

  /// Throws Error. The command buffers are the caller's.
  std::vector<CommandSegment> record(std::span<const Operation> operations, const Targets& targets);
  /// Of the last recording, where it has timestamps: [operations].
  const std::vector<OperationQueries>& queries() const { return queries_; }

 private:
  using Arguments = std::span<const uint32_t>;
  struct Size {
    uint32_t x = 1;
    uint32_t y = 1;
    uint32_t z = 1;
  };

  void dispatch(std::string_view shader, VulkanPipelines::Constants constants,
                std::span<const BufferBinding> bindings, Arguments arguments, Size size);
  void barrier(bool from_host, bool to_host);
  void enter_segment(int layer);
  void leave_segment();

  void embed(const Operation& operation);
  void norm(const Operation& norm, const Operation* added);
  void linear(const Operation& operation);
  void rope_and_store(const Operation* q, const Operation* k, const Operation* store);
  void attention(const Operation& operation);
  void elementwise(std::string_view shader, const Operation& operation);
  void argmax(const Operation& operation);
  void top_k(const Operation& operation);
  void read(const Operation& operation);
  size_t run(std::span<const Operation> operations);

  std::shared_ptr<VulkanDevice> device_;
  VulkanPipelines& pipelines_;
  const WeightStream* stream_;
  Targets targets_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<CommandSegment> segments_;
  std::vector<OperationQueries> queries_;
};

/// Length of the group of operations at the begin that one dispatch computes.
size_t fused_length(std::span<const Operation> operations);

}  // namespace qwench
