#include "backend/vulkan/command_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace qwench {
namespace {

// Flags of shaders/rope.comp.
constexpr uint32_t kNormsQueries = 1;
constexpr uint32_t kNormsKeys = 2;
constexpr uint32_t kRotatesKeys = 4;
constexpr uint32_t kInterleaved = 8;

constexpr uint32_t kStepSlot = 7;
constexpr uint32_t kNormThreads = 128;
constexpr uint32_t kRopeThreads = 64;
constexpr uint32_t kElementThreads = 128;
constexpr uint32_t kArgmaxThreads = 128;
constexpr uint32_t kMostTopThreads = 512;  // slots of shaders/top_k.comp
constexpr uint32_t kSegments = 8;          // of shaders/linear_rows.comp
constexpr int kMostRows = 8;               // of shaders/linear_rows.comp
constexpr uint32_t kTileOutputs = 64;      // of shaders/linear_tile.comp

uint32_t groups_of(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
uint32_t word(float number) { return std::bit_cast<uint32_t>(number); }
uint32_t whole(int64_t number) { return static_cast<uint32_t>(number); }

std::string_view cell_ending(const KvCache& cache) { return name(cache.dtype); }

}  // namespace

size_t fused_length(std::span<const Operation> operations) {
  const auto is = [&](size_t i, OperationKind kind) {
    return i < operations.size() && operations[i].kind == kind;
  };
  if (is(0, OperationKind::rope) && is(1, OperationKind::rope) && is(2, OperationKind::store_kv) &&
      operations[1].x == operations[2].x && operations[0].number == operations[1].number &&
      operations[0].eps == operations[1].eps && operations[0].interleaved == operations[1].interleaved)
    return 3;
  if (is(0, OperationKind::add) && is(1, OperationKind::rms_norm) && operations[0].x == operations[1].x)
    return 2;
  return 1;
}

void CommandRecorder::dispatch(std::string_view shader, VulkanPipelines::Constants constants,
                               std::span<const BufferBinding> bindings, Arguments arguments, Size size) {
  if (size.x == 0 || size.y == 0 || size.z == 0) return;
  const VulkanApi& api = device_->api();
  VkDescriptorSet set = pipelines_.descriptors(bindings);
  api.cmd_bind_pipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.pipeline(shader, constants));
  api.cmd_bind_descriptor_sets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1, &set, 0,
                               nullptr);
  api.cmd_push_constants(commands_, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                         static_cast<uint32_t>(arguments.size_bytes()), arguments.data());
  api.cmd_dispatch(commands_, size.x, size.y, size.z);
}

void CommandRecorder::barrier(bool from_host, bool to_host) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  VkPipelineStageFlags from = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkPipelineStageFlags to = from;
  if (from_host) {
    from |= VK_PIPELINE_STAGE_HOST_BIT;
    barrier.srcAccessMask |= VK_ACCESS_HOST_WRITE_BIT;
  }
  if (to_host) {
    to |= VK_PIPELINE_STAGE_HOST_BIT;
    barrier.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
  }
  device_->api().cmd_pipeline_barrier(commands_, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void CommandRecorder::enter_segment(int layer) {
  commands_ = device_->make_commands();
  segments_.push_back({commands_, layer});
  device_->begin(commands_, false);
  barrier(true, false);
}

void CommandRecorder::leave_segment() {
  barrier(false, true);
  device_->end(commands_);
}

std::vector<CommandSegment> CommandRecorder::record(std::span<const Operation> operations,
                                                    const Targets& targets) {
  const VulkanApi& api = device_->api();
  targets_ = targets;
  segments_.clear();
  queries_.assign(operations.size(), {});
  try {
    enter_segment(CommandSegment::kNoLayer);
    if (targets.queries != VK_NULL_HANDLE)
      api.cmd_reset_query_pool(commands_, targets.queries, 0, static_cast<uint32_t>(2 * operations.size()));
    for (size_t i = 0; i < operations.size();) {
      const VulkanWeight* weight = operations[i].weight;
      const int layer = weight == nullptr ? VulkanWeight::kResident : weight->streamed_layer;
      const int current = segments_.back().streamed_layer;
      if (layer != VulkanWeight::kResident && layer != current) {
        leave_segment();
        enter_segment(layer);
      }
      const auto query = static_cast<uint32_t>(2 * i);
      if (targets.queries != VK_NULL_HANDLE)
        api.cmd_write_timestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, targets.queries, query);
      const size_t length = run(operations.subspan(i));
      if (targets.queries != VK_NULL_HANDLE)
        api.cmd_write_timestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, targets.queries, query + 1);
      for (size_t j = 0; j < length; ++j) queries_[i + j] = {query, query + 1, j > 0};
      i += length;
      const bool beside = i < operations.size() && operations[i].goes_on;
      if (!beside && i < operations.size()) barrier(false, false);
    }
    leave_segment();
  } catch (...) {
    for (const CommandSegment& segment : segments_) device_->free_commands(segment.commands);
    throw;
  }
  return std::move(segments_);
}

size_t CommandRecorder::run(std::span<const Operation> operations) {
  const Operation& first = operations[0];
  const size_t length = fused_length(operations);
  switch (first.kind) {
    case OperationKind::embed:
      embed(first);
      break;
    case OperationKind::rms_norm:
      norm(first, nullptr);
      break;
    case OperationKind::linear:
      linear(first);
      break;
    case OperationKind::rope:
      rope_and_store(&first, length == 3 ? &operations[1] : nullptr, length == 3 ? &operations[2] : nullptr);
      break;
    case OperationKind::store_kv:
      rope_and_store(nullptr, nullptr, &first);
      break;
    case OperationKind::attention:
      attention(first);
      break;
    case OperationKind::silu_mul:
      elementwise("silu_mul", first);
      break;
    case OperationKind::add:
      if (length == 2) {
        norm(operations[1], &first);
      } else {
        elementwise("add", first);
      }
      break;
    case OperationKind::gather_rows:
      elementwise("gather_rows", first);
      break;
    case OperationKind::argmax:
      argmax(first);
      break;
    case OperationKind::top_k:
      top_k(first);
      break;
    case OperationKind::read:
      read(first);
      break;
  }
  return length;
}

void CommandRecorder::embed(const Operation& operation) {
  const WeightLayout& layout = operation.weight->layout;
  const auto slice_panels = whole(static_cast<int64_t>(device_->info().max_binding / layout.panel_bytes()));
  const std::string shader = fmt::format("embed.{}", shader_ending(layout.dtype));
  for (uint32_t panel = 0; panel < whole(layout.panels()); panel += slice_panels) {
    const uint32_t panels = std::min(slice_panels, whole(layout.panels()) - panel);
    const uint32_t first = panel * WeightLayout::kPanelRows;
    const uint32_t count = std::min<uint32_t>(panels * WeightLayout::kPanelRows, whole(layout.rows) - first);
    const BufferBinding bindings[] = {
        {0, &operation.weight->buffer(), panel * layout.panel_bytes(), panels * layout.panel_bytes()},
        {1, &operation.out->buffer()},
        {kStepSlot, targets_.step}};
    const uint32_t arguments[] = {layout.columns, first,        count, operation.out->stride / 4,
                                  layout.units,   layout.quants};
    dispatch(shader, {}, bindings, arguments, {groups_of(layout.columns, 8 * 32), whole(operation.rows)});
  }
}

void CommandRecorder::norm(const Operation& operation, const Operation* added) {
  const VulkanMatrix& y = added == nullptr ? *operation.x : *added->y;
  const BufferBinding bindings[] = {{0, &operation.x->buffer()},
                                    {1, &y.buffer()},
                                    {2, &operation.weight->buffer()},
                                    {3, &operation.out->buffer()}};
  const uint32_t arguments[] = {whole(operation.x->cols), operation.x->stride, y.stride,
                                operation.out->stride,    word(operation.eps), added == nullptr ? 0U : 1U};
  dispatch("rms_norm", {kNormThreads, 0}, bindings, arguments, {whole(operation.rows)});
}

void CommandRecorder::linear(const Operation& operation) {
  const VulkanWeight& weight = *operation.weight;
  const WeightLayout& layout = weight.layout;
  const bool streamed = weight.streamed_layer != VulkanWeight::kResident;
  const VulkanBuffer& buffer = streamed ? stream_->slot_of(weight.streamed_layer) : weight.buffer();
  const uint64_t origin = streamed ? weight.slot_offset : 0;
  const VulkanBuffer& bias = operation.bias == nullptr ? operation.x->buffer() : operation.bias->buffer();
  const bool few = operation.rows <= kMostRows;
  const auto rows = whole(operation.rows);
  const uint32_t rows_at_once = few ? std::bit_ceil(rows) : 0;
  const uint32_t tile = operation.rows <= 16 ? 1 : operation.rows <= 32 ? 2 : 4;
  const std::string shader = fmt::format("linear_{}.{}", few ? "rows" : "tile", shader_ending(layout.dtype));
  const auto slice_panels =
      std::max(2U, whole(static_cast<int64_t>(device_->info().max_binding / layout.panel_bytes())) & ~1U);
  for (uint32_t panel = 0; panel < whole(layout.panels()); panel += slice_panels) {
    const uint32_t panels = std::min(slice_panels, whole(layout.panels()) - panel);
    const uint32_t first = panel * WeightLayout::kPanelRows;
    const uint32_t outputs =
        std::min<uint32_t>(panels * WeightLayout::kPanelRows, whole(layout.rows) - first);
    const BufferBinding bindings[] = {
        {0, &buffer, origin + panel * layout.panel_bytes(), panels * layout.panel_bytes()},
        {1, &operation.x->buffer()},
        {2, &bias},
        {3, &operation.out->buffer()}};
    const uint32_t arguments[] = {layout.columns,
                                  outputs,
                                  first,
                                  rows,
                                  operation.x->stride / 4,
                                  operation.out->stride,
                                  layout.units,
                                  layout.quants,
                                  operation.bias == nullptr ? 0U : 1U};
    if (few) {
      dispatch(shader, {kSegments, rows_at_once}, bindings, arguments,
               {panels, groups_of(rows, rows_at_once)});
    } else {
      dispatch(shader, {tile, 0}, bindings, arguments,
               {groups_of(outputs, kTileOutputs), groups_of(rows, 16 * tile)});
    }
  }
}

// Any of the three may be null: a rotation alone, whose matrix goes the way of queries; a store alone; or
// all.
void CommandRecorder::rope_and_store(const Operation* q, const Operation* k, const Operation* store) {
  const Operation& any = q != nullptr ? *q : *store;
  const VulkanMatrix& anything = *any.x;
  const VulkanMatrix& keys = store == nullptr ? anything : *store->x;
  const VulkanMatrix& values = store == nullptr ? anything : *store->y;
  const VulkanMatrix& queries = q == nullptr ? anything : *q->x;
  const int head_dim = q == nullptr ? store->cache->head_dim : q->number;
  const auto norm_of = [&](const Operation* rope) -> const VulkanBuffer& {
    return rope == nullptr || rope->weight == nullptr ? anything.buffer() : rope->weight->buffer();
  };
  uint32_t flags = 0;
  if (q != nullptr && q->weight != nullptr) flags |= kNormsQueries;
  if (k != nullptr && k->weight != nullptr) flags |= kNormsKeys;
  if (k != nullptr) flags |= kRotatesKeys;
  if (q != nullptr && q->interleaved) flags |= kInterleaved;
  const auto q_heads = q == nullptr ? 0U : whole(queries.cols / head_dim);
  const auto kv_heads = store == nullptr ? 0U : whole(store->cache->kv_heads);
  const BufferBinding bindings[] = {
      {0, &queries.buffer()},
      {1, &keys.buffer()},
      {2, &values.buffer()},
      {3, &norm_of(q)},
      {4, &norm_of(k)},
      {5, store == nullptr ? &anything.buffer() : &store->cache->keys(store->layer)},
      {6, store == nullptr ? &anything.buffer() : &store->cache->values(store->layer)},
      {kStepSlot, targets_.step}};
  const uint32_t arguments[] = {q_heads,         kv_heads,       kv_heads,
                                whole(head_dim), queries.stride, keys.stride,
                                values.stride,   flags,          word(q == nullptr ? 0.0F : q->eps)};
  const std::string shader = fmt::format("rope.{}", store == nullptr ? "f32" : cell_ending(*store->cache));
  dispatch(shader, {kRopeThreads, 0}, bindings, arguments, {whole(any.rows), q_heads + 2 * kv_heads});
}

void CommandRecorder::attention(const Operation& operation) {
  const VulkanKvCache& cache = *operation.cache;
  const AttentionShape& shape = operation.attention;
  const auto heads = whole(operation.x->cols / cache.head_dim);
  const bool parts = shape.parts > 1;
  const BufferBinding bindings[] = {{0, &operation.x->buffer()},
                                    {1, &cache.keys(operation.layer)},
                                    {2, &cache.values(operation.layer)},
                                    {3, &operation.out->buffer()},
                                    {4, parts ? targets_.parts : &operation.out->buffer()},
                                    {kStepSlot, targets_.step}};
  const uint32_t arguments[] = {heads,
                                whole(cache.kv_heads),
                                whole(cache.head_dim),
                                operation.x->stride,
                                operation.out->stride,
                                whole(operation.number),
                                whole(shape.parts),
                                word(1.0F / std::sqrt(static_cast<float>(cache.head_dim)))};
  const std::string shader = fmt::format("attention.{}", cell_ending(cache));
  dispatch(shader, {whole(shape.queries), parts ? 1U : 0U}, bindings, arguments,
           {whole(shape.pieces), heads, whole(shape.parts)});
  if (!parts) return;
  barrier(false, false);
  const BufferBinding merged[] = {
      {3, &operation.out->buffer()}, {4, targets_.parts}, {kStepSlot, targets_.step}};
  dispatch("attention_merge", {}, merged, arguments, {whole(operation.rows), heads});
}

void CommandRecorder::elementwise(std::string_view shader, const Operation& operation) {
  const VulkanMatrix& second = operation.kind == OperationKind::gather_rows ? *operation.out : *operation.y;
  BufferBinding bindings[] = {{0, &operation.x->buffer()}, {1, &second.buffer()}, {kStepSlot, targets_.step}};
  const size_t count = operation.kind == OperationKind::gather_rows ? 3 : 2;
  const uint32_t arguments[] = {whole(operation.x->cols), operation.x->stride, second.stride};
  dispatch(shader, {}, std::span(bindings).first(count), arguments,
           {groups_of(whole(operation.x->cols), kElementThreads), whole(operation.rows)});
}

void CommandRecorder::argmax(const Operation& operation) {
  const BufferBinding bindings[] = {{0, &operation.x->buffer()}, {1, targets_.results}};
  const uint32_t arguments[] = {whole(operation.number), operation.x->stride};
  dispatch("argmax", {kArgmaxThreads, 0}, bindings, arguments, {whole(operation.rows)});
}

void CommandRecorder::top_k(const Operation& operation) {
  const BufferBinding bindings[] = {{0, &operation.x->buffer()}, {1, targets_.results}};
  const uint32_t arguments[] = {whole(operation.number), operation.x->stride, whole(operation.most)};
  // One work group reads a row of the whole vocabulary: as many threads as there may be.
  const VkPhysicalDeviceLimits& limits = device_->limits();
  const uint32_t threads = std::bit_floor(
      std::min({kMostTopThreads, limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]}));
  dispatch("top_k", {threads, 0}, bindings, arguments, {whole(operation.rows)});
}

void CommandRecorder::read(const Operation& operation) {
  const uint64_t row_bytes = uint64_t{operation.x->stride} * sizeof(float);
  const VkBufferCopy copy{static_cast<uint64_t>(operation.number) * row_bytes, 0,
                          static_cast<uint64_t>(operation.rows) * row_bytes};
  device_->api().cmd_copy_buffer(commands_, operation.x->buffer().handle(), targets_.results->handle(), 1,
                                 &copy);
}

}  // namespace qwench
