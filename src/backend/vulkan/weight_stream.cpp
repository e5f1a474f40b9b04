#include "backend/vulkan/weight_stream.h"

#include <algorithm>

namespace qwench {
namespace {

constexpr uint32_t kTimedLayers = 512;

}  // namespace

WeightStream::WeightStream(std::shared_ptr<VulkanDevice> device, int resident_layers)
    : device_(std::move(device)), resident_layers_(resident_layers) {
  copied_ = device_->make_timeline();
  computed_ = device_->make_timeline();
}

WeightStream::~WeightStream() {
  device_->api().device_wait_idle(device_->handle());
  if (queries_ != VK_NULL_HANDLE) device_->api().destroy_query_pool(device_->handle(), queries_, nullptr);
  device_->destroy_timeline(copied_);
  device_->destroy_timeline(computed_);
}

void WeightStream::add(const VulkanWeight& weight) {
  layers_[weight.streamed_layer].weights.push_back(&weight);
}

void WeightStream::reserve(uint64_t slot_bytes) {
  for (std::unique_ptr<VulkanBuffer>& slot : slots_) {
    if (slot && slot->size() >= slot_bytes) continue;
    slot = device_->make_buffer(slot_bytes, BufferPlace::device, "the slots of streamed layers");
  }
}

void WeightStream::record(int layer, Layer& entry, bool timed) {
  const VulkanApi& api = device_->api();
  if (entry.copy == VK_NULL_HANDLE) entry.copy = device_->make_copy_commands();
  device_->begin(entry.copy, false);
  const auto query = static_cast<uint32_t>(2 * layer);
  if (timed) api.cmd_write_timestamp(entry.copy, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries_, query);
  for (const VulkanWeight* weight : entry.weights) {
    const VkBufferCopy copy{0, weight->slot_offset, weight->layout.bytes()};
    api.cmd_copy_buffer(entry.copy, weight->buffer().handle(), slots_[index_of(layer)]->handle(), 1, &copy);
  }
  if (timed) api.cmd_write_timestamp(entry.copy, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, query + 1);
  device_->end(entry.copy);
  entry.timed = timed;
}

void WeightStream::fetch(int layer) {
  const size_t slot = index_of(layer);
  if (content_[slot] == layer) return;
  Layer& entry = layers_[layer];
  // Once: a timestamp is written anew only after it was reset.
  const bool times = timing_ && layer < static_cast<int>(kTimedLayers) &&
                     std::find(timed_layers_.begin(), timed_layers_.end(), layer) == timed_layers_.end();
  if (entry.copy == VK_NULL_HANDLE || entry.timed != times) record(layer, entry, times);
  content_[slot] = -1;
  device_->submit(VulkanDevice::Queue::copy, entry.copy, readers_[slot], {copied_, ++copies_});
  content_[slot] = layer;
  fetched_[slot] = copies_;
  for (const VulkanWeight* weight : entry.weights) bytes_copied_ += weight->layout.bytes();
  if (times) timed_layers_.push_back(layer);
}

void WeightStream::compute(int layer, VkCommandBuffer commands) {
  const QueuePoint done{computed_, ++computations_};
  device_->submit(VulkanDevice::Queue::compute, commands, {copied_, fetched_[index_of(layer)]}, done);
  readers_[index_of(layer)] = done;
}

void WeightStream::start_timing() {
  timed_layers_.clear();
  if (device_->physical().copy_timestamp_bits == 0) return;  // the copies are not timed, what is computed is
  if (queries_ == VK_NULL_HANDLE) {
    VkQueryPoolCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    create.queryType = VK_QUERY_TYPE_TIMESTAMP;
    create.queryCount = 2 * kTimedLayers;
    device_->check(device_->api().create_query_pool(device_->handle(), &create, nullptr, &queries_),
                   "timing");
  }
  // By the queue that computes: those for copies alone cannot.
  VkCommandBuffer commands = device_->make_commands();
  device_->begin(commands, true);
  device_->api().cmd_reset_query_pool(commands, queries_, 0, 2 * kTimedLayers);
  device_->end(commands);
  device_->submit(VulkanDevice::Queue::compute, commands);
  device_->wait();
  device_->free_commands(commands);
  timing_ = true;
}

std::vector<StreamedCopy> WeightStream::stop_timing() {
  std::vector<StreamedCopy> copies;
  for (const int layer : timed_layers_) {
    std::array<uint64_t, 2> ticks{};
    const VkResult result = device_->api().get_query_pool_results(
        device_->handle(), queries_, static_cast<uint32_t>(2 * layer), 2, sizeof ticks, ticks.data(),
        sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
    if (result == VK_SUCCESS) copies.push_back({layer, ticks[0], ticks[1]});
  }
  timing_ = false;
  timed_layers_.clear();
  return copies;
}

}  // namespace qwench
