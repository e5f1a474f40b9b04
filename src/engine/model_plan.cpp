#include "engine/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "backend/cpu/cpu_tensors.h"
#include "checkpoint/expected_tensors.h"
#include "kernels/kv_cells.h"
#include "model/device_weights.h"
#include "model/kept_type.h"
#include "qwench/error.h"

namespace qwench {
namespace {

// Logits are computed for so many rows at a time at least: 40 MB for the largest vocabulary, and resident
// only as far as a batch uses them.
constexpr int kMinLogitRows = 64;
// What is chosen where nothing is asked for. More rows than 512 do not make a pass more efficient;
// activations take an eighth at most of what the weights leave, and the cache, which fills up with what may
// be of use again, half of the rest. Sequences count as of usual length: longer ones wait for each other or
// are preempted.
constexpr int kMostBatch = 64;
constexpr int kMostBatchTokens = 512;
constexpr int kLeastBatchTokens = 64;
constexpr uint64_t kActivationPart = 8;
constexpr double kCacheShare = 0.5;
constexpr int kUsualLength = 1024;
// On a device layers are streamed where a sequence would have fewer positions otherwise.
constexpr int64_t kUsualContext = 4096;
constexpr int64_t kLeastContext = 256;
constexpr uint64_t kDeviceReserve = uint64_t{64} << 20;
// Measured: the program with its libraries and two threads, before a model is loaded, and what copied weights
// leave of their last huge page.
constexpr uint64_t kProgram = 17'500'000;
// Measured: what a tokenizer keeps, for each byte of the tables it is read from.
constexpr double kTextPerJsonByte = 1.6;
constexpr double kTextPerGgufByte = 3.0;

uint64_t text_bytes(const Checkpoint& checkpoint) {
  uint64_t tables = 0;
  if (const GgufFile* gguf = checkpoint.gguf()) {
    for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
      if (const GgufValue* value = gguf->find(key)) tables += value->bytes.size();
    }
    return static_cast<uint64_t>(kTextPerGgufByte * static_cast<double>(tables));
  }
  std::error_code error;
  const auto size = std::filesystem::file_size(checkpoint.folder() / "tokenizer.json", error);
  return error ? 0 : static_cast<uint64_t>(kTextPerJsonByte * static_cast<double>(size));
}

void count_weights(const Checkpoint& checkpoint, const EngineOptions& options, ModelPlan& plan) {
  const bool tied = checkpoint.config().tie_word_embeddings;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config())) {
    const TensorView* tensor = checkpoint.find(expected.name);
    if (tensor == nullptr) continue;
    const bool matrix = tensor->rows() > 1;
    const DType kept = kept_type(*tensor, options.dtype);
    const bool embedding = expected.name == "model.embed_tokens.weight";
    const bool table = embedding && !tied;
    const uint64_t bytes = kept_bytes(kept, static_cast<uint64_t>(tensor->rows()),
                                      static_cast<uint64_t>(tensor->cols()), options.packed_bf16 && !table);
    plan.parameters += tensor->count();
    plan.quantized = plan.quantized || is_quantized(kept);
    if (embedding) {
      plan.embedding = bytes;  // where it stays in the file too: a page holds the rows of many tokens
      if (tied) plan.bytes_per_token += bytes;
      continue;
    }
    plan.weights += bytes;
    plan.bytes_per_token += bytes;
    if (matrix && expected.name != "lm_head.weight") plan.macs_per_token += tensor->count();
  }
}

bool fits(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available,
          const DeviceInfo* device, int batch) {
  try {
    return plan_model(checkpoint, options, available, device).batch >= batch;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

uint64_t ModelPlan::kv_cache() const {
  return kv_per_token * static_cast<uint64_t>(context) * static_cast<uint64_t>(batch);
}

uint64_t ModelPlan::total() const {
  if (on_device) return weights_resident + weights_slots + activations + kv_cache();
  return weights + embedding + activations + text + program + kv_cache();
}

DType stored_type(const Checkpoint& checkpoint) {
  const TensorView* embedding = checkpoint.find("model.embed_tokens.weight");
  return embedding == nullptr ? DType::f16 : embedding->dtype;
}

namespace {

/// Of the request, the memory: what there is, and on a device what its weights take of it.
ModelPlan plan_with(const Checkpoint& checkpoint, const EngineOptions& options, MemoryRequest request) {
  ModelPlan plan;
  plan.max_batch = options.max_batch > 0 ? options.max_batch : kMostBatch;
  plan.max_batch_tokens = options.max_batch_tokens > 0 ? options.max_batch_tokens : kMostBatchTokens;
  count_weights(checkpoint, options, plan);
  plan.text = text_bytes(checkpoint);
  plan.program = kProgram;
  if (request.weights == 0) {
    request.weights = plan.weights + plan.embedding + plan.text + plan.program;
    request.quantized_weights = plan.quantized;
  }
  request.kv_dtype = options.cells(stored_type(checkpoint));
  request.context = options.context;
  request.max_batch = plan.max_batch;
  request.max_batch_tokens = plan.max_batch_tokens;
  request.max_logit_rows = std::max(kMinLogitRows, plan.max_batch);
  request.cache_tokens = options.cache_tokens;
  request.cache_share = options.max_batch > 0 ? 1.0 : kCacheShare;
  const uint64_t available = request.available;
  if (options.max_batch_tokens == 0) {
    const uint64_t left = available - std::min(available, request.weights);
    while (request.max_batch_tokens > kLeastBatchTokens &&
           activation_bytes(checkpoint.config(), request) > left / kActivationPart)
      request.max_batch_tokens /= 2;
    plan.max_batch_tokens = request.max_batch_tokens;
  }
  plan.memory = plan_memory(checkpoint.config(), request);
  if (options.max_batch == 0) {
    const int usual = std::min(plan.memory.context, kUsualLength);
    plan.max_batch = std::clamp(plan.memory.blocks / ((usual + kBlockSize - 1) / kBlockSize), 1, kMostBatch);
  }
  plan.kv_per_token = plan.memory.kv_per_token;
  plan.context = plan.memory.context;
  const int blocks = (plan.context + kBlockSize - 1) / kBlockSize;
  plan.batch = std::min(plan.max_batch, plan.memory.blocks / blocks);
  MemoryRequest resident = request;
  resident.max_logit_rows = plan.batch;
  plan.activations = activation_bytes(checkpoint.config(), resident);
  return plan;
}

/// Blocks of the KV cache that the device's buffers hold: one has the keys of a layer.
int most_blocks(const Checkpoint& checkpoint, DType cells, const DeviceInfo& device) {
  const ModelConfig& config = checkpoint.config();
  const uint64_t block = bytes_of(cells, static_cast<uint64_t>(config.num_kv_heads) *
                                             static_cast<uint64_t>(config.head_dim) * kBlockSize);
  return static_cast<int>(std::min<uint64_t>(device.max_binding / std::max<uint64_t>(block, 1), 1 << 26));
}

ModelPlan plan_on_device(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available,
                         const DeviceInfo& device) {
  check_device_cells(options.cells(stored_type(checkpoint)), checkpoint.config().head_dim);
  const DeviceWeights weights = device_weights(checkpoint, options.dtype);
  const int layers = weights.count();
  if (options.gpu_layers && (*options.gpu_layers < 0 || *options.gpu_layers > layers)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} layers were asked to stay on the device, but the model has {}",
                            *options.gpu_layers, layers));
  }
  MemoryRequest request;
  request.available = available;
  request.reserve = std::min(kDeviceReserve, available / 16);
  request.q8_elements = kDeviceQ8Elements;
  request.most_blocks = most_blocks(checkpoint, options.cells(stored_type(checkpoint)), device);
  const auto plan_of = [&](int gpu_layers) {
    request.weights = weights.resident(gpu_layers) + weights.slots(gpu_layers);
    ModelPlan plan = plan_with(checkpoint, options, request);
    plan.on_device = true;
    plan.bytes_per_token = weights.per_token();
    plan.weights_resident = weights.resident(gpu_layers);
    plan.weights_slots = weights.slots(gpu_layers);
    plan.weights_streamed = weights.streamed(gpu_layers);
    plan.gpu_layers = gpu_layers;
    plan.layers = layers;
    return plan;
  };
  if (options.gpu_layers) return plan_of(*options.gpu_layers);
  const int64_t wanted = options.context > 0
                             ? options.context
                             : std::min<int64_t>(kUsualContext, checkpoint.config().max_position);
  // Where no number of layers leaves so much room, half of it and so on: streaming all costs more.
  for (int64_t least = wanted; least >= std::min(wanted, kLeastContext); least /= 2) {
    for (int gpu_layers = layers; gpu_layers > 0; --gpu_layers) {
      if (request.available < weights.resident(gpu_layers) + weights.slots(gpu_layers)) continue;
      try {
        ModelPlan plan = plan_of(gpu_layers);
        if (plan.context >= least || plan.memory.blocks >= request.most_blocks) return plan;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::out_of_memory) throw;
      }
    }
  }
  return plan_of(0);
}

}  // namespace

uint64_t device_memory(const DeviceInfo& device, const EngineOptions& options) {
  return options.device_memory > 0 ? options.device_memory : device.budget;
}

ModelPlan plan_model(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available,
                     const DeviceInfo* device) {
  if (device != nullptr) return plan_on_device(checkpoint, options, available, *device);
  return plan_with(checkpoint, options, {.available = available});
}

int longest_context(const Checkpoint& checkpoint, EngineOptions options, uint64_t available,
                    const DeviceInfo* device) {
  options.context = 0;
  options.max_batch = 1;
  try {
    return plan_model(checkpoint, options, available, device).context;
  } catch (const Error&) {
    return 0;
  }
}

int largest_batch(const Checkpoint& checkpoint, EngineOptions options, uint64_t available,
                  const DeviceInfo* device) {
  int most = 0;
  for (int step = 4096; step > 0; step /= 2) {
    options.max_batch = most + step;
    if (options.max_batch <= 4096 && fits(checkpoint, options, available, device, options.max_batch))
      most += step;
  }
  return most;
}

std::string cheapest_change(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available,
                            const DeviceInfo* device) {
  // From what changes an answer least to what changes it most.
  const int batch = options.max_batch;
  EngineOptions changed = options;
  std::string flags;
  const auto add = [&](const std::string& flag) { flags += (flags.empty() ? "" : " ") + flag; };
  if (changed.dtype == DType::f32) {
    changed.dtype.reset();
    add("without --dtype f32");
    if (fits(checkpoint, changed, available, device, batch)) return flags;
  }
  const int head_dim = checkpoint.config().head_dim;
  std::string with_cells = flags;
  while (const std::optional<DType> smaller =
             smaller_cells(changed.cells(stored_type(checkpoint)), head_dim,
                           device == nullptr ? kQ8Block : kDeviceQ8Elements)) {
    changed.kv_dtype = *smaller;
    with_cells = fmt::format("{}{}--kv-dtype {}", flags, flags.empty() ? "" : " ", name(*smaller));
    if (fits(checkpoint, changed, available, device, batch)) return with_cells;
  }
  flags = with_cells;
  if (const int fewer = largest_batch(checkpoint, changed, available, device); fewer >= 1 && fewer < batch) {
    add(fmt::format("--batch {}", fewer));
    return flags;
  }
  if (const int shorter = longest_context(checkpoint, changed, available, device); shorter > 0) {
    add(fmt::format("--ctx {} --batch 1", shorter));
    return flags;
  }
  return "";
}

}  // namespace qwench
