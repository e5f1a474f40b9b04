#include "backend/vulkan/command_cache.h"

#include <algorithm>

#include "qwench/error.h"

namespace qwench {
namespace {

constexpr size_t kMostRecordings = 64;

// FNV-1a over words.
uint64_t hash_of(std::span<const uint64_t> words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint64_t word : words) hash = (hash ^ word) * 0x100000001b3;
  return hash;
}

}  // namespace

CommandCache::CommandCache(std::shared_ptr<VulkanDevice> device, VulkanPipelines& pipelines,
                           WeightStream* stream)
    : device_(std::move(device)),
      pipelines_(pipelines),
      stream_(stream),
      recorder_(device_, pipelines, stream) {}

CommandCache::~CommandCache() {
  device_->api().device_wait_idle(device_->handle());
  for (auto& [hash, recording] : recordings_by_hash_) drop(recording);
}

void CommandCache::drop(Recording& recording) {
  for (const CommandSegment& segment : recording.segments) device_->free_commands(segment.commands);
}

void CommandCache::forget() {
  for (auto& [hash, recording] : recordings_by_hash_) drop(recording);
  recordings_by_hash_.clear();
  pipelines_.forget_descriptors();
}

void CommandCache::evict() {
  if (recordings_by_hash_.size() < kMostRecordings) return;
  const auto oldest =
      std::min_element(recordings_by_hash_.begin(), recordings_by_hash_.end(),
                       [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
  drop(oldest->second);
  recordings_by_hash_.erase(oldest);
}

CommandCache::Recording& CommandCache::find_or_record(std::span<const Operation> operations,
                                                      const CommandRecorder::Targets& targets) {
  key_.clear();
  for (const Operation& operation : operations) operation.add_to(key_);
  const uint64_t hash = hash_of(key_);
  const auto [begin, end] = recordings_by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second.key == key_) return it->second;
  }
  evict();
  Recording recording;
  recording.segments = recorder_.record(operations, targets);
  recording.key = key_;
  ++recordings_;
  return recordings_by_hash_.emplace(hash, std::move(recording))->second;
}

void CommandCache::submit(std::span<const CommandSegment> segments) {
  if (segments.size() > 1) {
    // The first two streamed layers are on their way while those before them compute.
    for (size_t i = 1; i < std::min<size_t>(3, segments.size()); ++i)
      stream_->fetch(segments[i].streamed_layer);
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].streamed_layer == CommandSegment::kNoLayer) {
      device_->submit(VulkanDevice::Queue::compute, segments[i].commands);
      continue;
    }
    stream_->fetch(segments[i].streamed_layer);
    stream_->compute(segments[i].streamed_layer, segments[i].commands);
    if (i + 2 < segments.size()) stream_->fetch(segments[i + 2].streamed_layer);
  }
  device_->wait();
}

void CommandCache::run(std::span<const Operation> operations, CommandRecorder::Targets targets) {
  if (measuring_) return run_measured(operations, targets);
  Recording& recording = find_or_record(operations, targets);
  recording.last_use = ++uses_;
  submit(recording.segments);
}

void CommandCache::copy_block(const VulkanKvCache& cache, int from, int to) {
  const VulkanApi& api = device_->api();
  Recording once;
  once.segments.push_back({device_->make_commands(), CommandSegment::kNoLayer});
  VkCommandBuffer commands = once.segments[0].commands;
  device_->begin(commands, true);
  const VkBufferCopy copy{static_cast<uint64_t>(from) * cache.block_bytes(),
                          static_cast<uint64_t>(to) * cache.block_bytes(), cache.block_bytes()};
  for (int layer = 0; layer < cache.layers; ++layer) {
    for (const VulkanBuffer* buffer : {&cache.keys(layer), &cache.values(layer)})
      api.cmd_copy_buffer(commands, buffer->handle(), buffer->handle(), 1, &copy);
  }
  device_->end(commands);
  try {
    submit(once.segments);
  } catch (...) {
    drop(once);
    throw;
  }
  drop(once);
}

void CommandCache::measure(bool on) {
  if (on && device_->physical().timestamp_bits == 0)
    throw Error(ErrorKind::unsupported,
                device_->info().name + " has no timestamps: its operations cannot be timed");
  if (stream_ != nullptr) {
    if (on) {
      stream_->start_timing();
    } else {
      copy_times_.clear();
      for (const StreamedCopy& copy : stream_->stop_timing()) {
        const double start = copy.begin > origin_ ? seconds(copy.begin - origin_) : 0;
        copy_times_.push_back({copy.layer, start, seconds(copy.end - copy.begin)});
      }
    }
  }
  measuring_ = on;
  if (on) {
    times_.clear();
    copy_times_.clear();
    origin_ = 0;
  }
}

double CommandCache::seconds(uint64_t ticks) const {
  return static_cast<double>(ticks) * static_cast<double>(device_->limits().timestampPeriod) * 1e-9;
}

void CommandCache::run_measured(std::span<const Operation> operations, CommandRecorder::Targets targets) {
  const VulkanApi& api = device_->api();
  VkQueryPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  create.queryType = VK_QUERY_TYPE_TIMESTAMP;
  create.queryCount = static_cast<uint32_t>(2 * operations.size());
  device_->check(api.create_query_pool(device_->handle(), &create, nullptr, &targets.queries), "timing");
  struct Pool {
    VulkanDevice& device;
    VkQueryPool queries;
    ~Pool() { device.api().destroy_query_pool(device.handle(), queries, nullptr); }
  } const pool{*device_, targets.queries};
  Recording once;
  once.segments = recorder_.record(operations, targets);
  try {
    submit(once.segments);
    // One by one: fused operations leave queries out.
    for (size_t i = 0; i < operations.size(); ++i) {
      const OperationQueries& own = recorder_.queries()[i];
      std::array<uint64_t, 2> ticks{};
      device_->check(
          api.get_query_pool_results(device_->handle(), targets.queries, own.begin, 2, sizeof ticks,
                                     ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
          "timing");
      if (origin_ == 0) origin_ = ticks[0];
      const double start = seconds(ticks[0] - std::min(origin_, ticks[0]));
      const double took = ticks[1] > ticks[0] ? seconds(ticks[1] - ticks[0]) : 0;
      if (operations[i].kind == OperationKind::read) continue;  // no operation of Backend's
      if (operations[i].goes_on) {
        OperationTime& call = times_.back();
        call.seconds = std::max(call.seconds, start + took - call.start);
      } else if (own.fused) {
        times_.push_back({start + took, 0, true});
      } else {
        times_.push_back({start, took, false});
      }
    }
  } catch (...) {
    drop(once);
    throw;
  }
  drop(once);
}

}  // namespace qwench
