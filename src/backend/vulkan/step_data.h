#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/vulkan/vulkan_device.h"

namespace qwench {

/// How a batch's attention is cut into work groups.
struct AttentionShape {
  int pieces = 0;   // work groups of a head
  int queries = 1;  // rows of a piece at most: 1 or 4
  int parts = 1;    // of a sequence's positions, each its own work group; 1: one computes all
};

/// What shaders read of a batch (shaders/step.glsl), in memory that the host writes.
class StepData {
 public:
  /// Positions in one part of attention (shaders/attention_state.glsl).
  static constexpr int kPart = 512;

  explicit StepData(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {}

  /// No submitted command may use what was written before. Throws Error (out_of_memory). Returns whether the
  /// buffer is another one than before.
  bool write(const Batch& batch);
  /// The logit rows alone, of a batch that was written.
  void write_logit_rows(const Batch& batch);

  const VulkanBuffer& buffer() const { return *buffer_; }
  AttentionShape attention() const { return attention_; }

 private:
  bool reserve(size_t words);

  std::shared_ptr<VulkanDevice> device_;
  std::unique_ptr<VulkanBuffer> buffer_;
  AttentionShape attention_;
  size_t logit_rows_at_ = 0;  // in words
};

}  // namespace qwench
