#include "engine/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "backend/cpu/cpu_tensors.h"
#include "checkpoint/expected_tensors.h"
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

void count_weights(const Checkpoint& checkpoint, std::optional<DType> dtype, ModelPlan& plan) {
  const bool tied = checkpoint.config().tie_word_embeddings;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config())) {
    const TensorView* tensor = checkpoint.find(expected.name);
    if (tensor == nullptr) continue;
    const bool matrix = tensor->rows() > 1;
    const DType kept = kept_type(*tensor, dtype);
    const uint64_t bytes =
        kept_bytes(kept, static_cast<uint64_t>(tensor->rows()), static_cast<uint64_t>(tensor->cols()));
    const bool embedding = expected.name == "model.embed_tokens.weight";
    const bool mapped = kept == tensor->dtype && matrix && !is_quantized(kept);
    plan.parameters += tensor->count();
    plan.quantized = plan.quantized || is_quantized(kept);
    if (embedding) {
      plan.embedding = bytes;  // of an untied model too: a page holds the rows of many tokens
      if (tied) plan.bytes_per_token += bytes;
      continue;
    }
    (mapped ? plan.weights_mapped : plan.weights_converted) += bytes;
    plan.bytes_per_token += bytes;
    if (matrix && expected.name != "lm_head.weight") plan.macs_per_token += tensor->count();
  }
}

bool fits(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available, int batch) {
  try {
    return plan_model(checkpoint, options, available).batch >= batch;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

uint64_t ModelPlan::kv_cache() const {
  return kv_per_token * static_cast<uint64_t>(context) * static_cast<uint64_t>(batch);
}

uint64_t ModelPlan::total() const {
  return weights_mapped + weights_converted + embedding + activations + text + program + kv_cache();
}

DType stored_type(const Checkpoint& checkpoint) {
  const TensorView* embedding = checkpoint.find("model.embed_tokens.weight");
  return embedding == nullptr ? DType::f16 : embedding->dtype;
}

ModelPlan plan_model(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available) {
  ModelPlan plan;
  plan.max_batch = options.max_batch > 0 ? options.max_batch : kMostBatch;
  plan.max_batch_tokens = options.max_batch_tokens > 0 ? options.max_batch_tokens : kMostBatchTokens;
  count_weights(checkpoint, options.dtype, plan);
  plan.text = text_bytes(checkpoint);
  plan.program = kProgram;
  MemoryRequest request{
      .weights = plan.weights_mapped + plan.weights_converted + plan.embedding + plan.text + plan.program,
      .quantized_weights = plan.quantized,
      .kv_dtype = options.cells(stored_type(checkpoint)),
      .context = options.context,
      .max_batch = plan.max_batch,
      .max_batch_tokens = plan.max_batch_tokens,
      .max_logit_rows = std::max(kMinLogitRows, plan.max_batch),
      .cache_tokens = options.cache_tokens,
      .cache_share = options.max_batch > 0 ? 1.0 : kCacheShare,
      .available = available};
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

int longest_context(const Checkpoint& checkpoint, EngineOptions options, uint64_t available) {
  options.context = 0;
  options.max_batch = 1;
  try {
    return plan_model(checkpoint, options, available).context;
  } catch (const Error&) {
    return 0;
  }
}

int largest_batch(const Checkpoint& checkpoint, EngineOptions options, uint64_t available) {
  int most = 0;
  for (int step = 4096; step > 0; step /= 2) {
    options.max_batch = most + step;
    if (options.max_batch <= 4096 && fits(checkpoint, options, available, options.max_batch)) most += step;
  }
  return most;
}

std::string cheapest_change(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available) {
  // From what changes an answer least to what changes it most.
  const int batch = options.max_batch;
  EngineOptions changed = options;
  std::string flags;
  const auto add = [&](const std::string& flag) { flags += (flags.empty() ? "" : " ") + flag; };
  if (changed.dtype == DType::f32) {
    changed.dtype.reset();
    add("without --dtype f32");
    if (fits(checkpoint, changed, available, batch)) return flags;
  }
  const int head_dim = checkpoint.config().head_dim;
  std::string with_cells = flags;
  while (const std::optional<DType> smaller =
             smaller_cells(changed.cells(stored_type(checkpoint)), head_dim)) {
    changed.kv_dtype = *smaller;
    with_cells = fmt::format("{}{}--kv-dtype {}", flags, flags.empty() ? "" : " ", name(*smaller));
    if (fits(checkpoint, changed, available, batch)) return with_cells;
  }
  flags = with_cells;
  if (const int fewer = largest_batch(checkpoint, changed, available); fewer >= 1 && fewer < batch) {
    add(fmt::format("--batch {}", fewer));
    return flags;
  }
  if (const int shorter = longest_context(checkpoint, changed, available); shorter > 0) {
    add(fmt::format("--ctx {} --batch 1", shorter));
    return flags;
  }
  return "";
}

}  // namespace qwench
