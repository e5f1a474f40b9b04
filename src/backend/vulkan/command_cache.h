#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/vulkan/command_recorder.h"

namespace qwench {

/// Runs lists of operations. The commands of a list are recorded once and submitted again whenever the same
/// operations on the same buffers and rows come back.
class CommandCache {
 public:
  CommandCache(std::shared_ptr<VulkanDevice> device, VulkanPipelines& pipelines, WeightStream* stream);
  ~CommandCache();
  CommandCache(const CommandCache&) = delete;
  CommandCache& operator=(const CommandCache&) = delete;

  /// Submits the operations and waits for them. Throws Error (device_lost, out_of_memory).
  void run(std::span<const Operation> operations, CommandRecorder::Targets targets);
  /// Copies a block of all layers, and waits. Throws Error.
  void copy_block(const VulkanKvCache& cache, int from, int to);
  /// Forgets all recorded commands: a buffer that they use was replaced.
  void forget();

  void measure(bool on);
  std::span<const OperationTime> measured() const { return times_; }
  std::span<const CopyTime> measured_copies() const { return copy_times_; }
  int64_t recordings() const { return recordings_; }  ///< so far

 private:
  struct Recording {
    std::vector<uint64_t> key;
    std::vector<CommandSegment> segments;
    uint64_t last_use = 0;
  };

  Recording& find_or_record(std::span<const Operation> operations, const CommandRecorder::Targets& targets);
  void run_measured(std::span<const Operation> operations, CommandRecorder::Targets targets);
  void submit(std::span<const CommandSegment> segments);
  void drop(Recording& recording);
  void evict();
  double seconds(uint64_t ticks) const;

  std::shared_ptr<VulkanDevice> device_;
  VulkanPipelines& pipelines_;
  WeightStream* stream_;
  CommandRecorder recorder_;
  std::vector<uint64_t> key_;
  std::multimap<uint64_t, Recording> recordings_by_hash_;
  uint64_t uses_ = 0;
  int64_t recordings_ = 0;

  bool measuring_ = false;
  uint64_t origin_ = 0;  // in ticks; 0: not known yet
  std::vector<OperationTime> times_;
  std::vector<CopyTime> copy_times_;
};

}  // namespace qwench
