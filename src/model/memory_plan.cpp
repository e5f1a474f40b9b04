#include "model/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/backend.h"
#include "kernels/kv_cells.h"
#include "qwench/error.h"

namespace qwench {
namespace {

// Left to the system, and to what grows with use (stacks, requests, fragmentation).
constexpr uint64_t kReserve = uint64_t{64} << 20;

std::string megabytes(uint64_t bytes) { return fmt::format("{} MB", (bytes + 999'999) / 1'000'000); }

int blocks_of(int64_t positions) { return static_cast<int>((positions + kBlockSize - 1) / kBlockSize); }

}  // namespace

uint64_t activation_bytes(const ModelConfig& config, const MemoryRequest& request) {
  const auto tokens = static_cast<uint64_t>(request.max_batch_tokens);
  const auto logit_rows = static_cast<uint64_t>(request.max_logit_rows);
  const auto hidden = static_cast<uint64_t>(config.hidden_size);
  const auto q_width = static_cast<uint64_t>(config.num_heads) * static_cast<uint64_t>(config.head_dim);
  const auto kv_width = static_cast<uint64_t>(config.num_kv_heads) * static_cast<uint64_t>(config.head_dim);
  const uint64_t row =
      3 * hidden + 2 * q_width + 2 * kv_width + 2 * static_cast<uint64_t>(config.intermediate_size);
  const uint64_t floats = tokens * row + logit_rows * (hidden + static_cast<uint64_t>(config.vocab_size));
  if (!request.quantized_weights) return sizeof(float) * floats;
  // The widest input of a linear, as 16-bit and as 8-bit numbers with a scale and sums for each block of 32.
  const uint64_t widest = std::max({hidden, q_width, static_cast<uint64_t>(config.intermediate_size)});
  return sizeof(float) * floats + tokens * ((widest + 31) / 32) * (80 + 44);
}

std::optional<DType> smaller_cells(DType cells, int head_dim, int q8_elements) {
  if (cells == DType::f32) return DType::f16;
  if (!is_quantized(cells) && head_dim % q8_elements == 0) return DType::q8_0;
  return std::nullopt;
}

uint64_t MemoryPlan::kv_cache() const {
  return kv_per_token * static_cast<uint64_t>(blocks) * static_cast<uint64_t>(kBlockSize);
}

MemoryPlan plan_memory(const ModelConfig& config, const MemoryRequest& request) {
  if (request.context > config.max_position) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a context of {} was asked for, but the model's limit is {}", request.context,
                            config.max_position));
  }
  check_kv_cells(request.kv_dtype, config.head_dim);
  MemoryPlan plan;
  plan.weights = request.weights;
  plan.logit_rows = request.max_logit_rows;
  plan.activations = activation_bytes(config, request);
  plan.kv_per_token = 2 * static_cast<uint64_t>(config.num_layers) *
                      bytes_of(request.kv_dtype, static_cast<uint64_t>(config.num_kv_heads) *
                                                     static_cast<uint64_t>(config.head_dim));
  const int64_t wanted =
      request.context > 0 ? request.context : std::min<int64_t>(config.max_position, 1 << 24);
  const uint64_t fixed = plan.weights + plan.activations + request.reserve.value_or(kReserve);
  const uint64_t left = request.available > fixed ? request.available - fixed : 0;
  const uint64_t block_bytes = plan.kv_per_token * static_cast<uint64_t>(kBlockSize);
  const auto fitting = static_cast<int64_t>(
      std::min<uint64_t>(left / block_bytes, static_cast<uint64_t>(std::max(request.most_blocks, 1))));

  plan.context = static_cast<int>(wanted);
  if (fitting < 1) {
    throw Error(ErrorKind::out_of_memory,
                fmt::format("the model needs {} for weights and buffers alone, but {} are available; take a "
                            "smaller or a quantized model",
                            megabytes(fixed + block_bytes), megabytes(request.available)));
  }
  if (fitting < blocks_of(wanted)) {
    if (request.context > 0) {
      const std::optional<DType> smaller =
          smaller_cells(request.kv_dtype, config.head_dim, request.q8_elements);
      throw Error(
          ErrorKind::out_of_memory,
          fmt::format(
              "the model needs {} for weights and buffers and {} for the keys and values of a context "
              "of {}, but {} are available; use a shorter context (-c){}",
              megabytes(fixed), megabytes(plan.kv_per_token * static_cast<uint64_t>(wanted)), wanted,
              megabytes(request.available),
              smaller ? fmt::format(" or a smaller cache (--kv-dtype {})", name(*smaller)) : ""));
    }
    plan.context = static_cast<int>(fitting * kBlockSize);
  }
  if (request.cache_tokens > 0 && request.context == 0)
    plan.context = static_cast<int>(std::min<int64_t>(plan.context, request.cache_tokens));
  const int64_t least = blocks_of(plan.context);
  int64_t most = std::max(least, static_cast<int64_t>(static_cast<double>(fitting) * request.cache_share));
  if (request.cache_tokens > 0) {
    if (request.cache_tokens < plan.context) {
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("a KV cache of {} positions was asked for, but a sequence may have {}; ask for at "
                      "least as many, or use a shorter context (-c)",
                      request.cache_tokens, plan.context));
    }
    most = blocks_of(request.cache_tokens);
    if (most > fitting) {
      throw Error(
          ErrorKind::out_of_memory,
          fmt::format("a KV cache of {} positions takes {}, but of {} the model leaves {}; ask for at "
                      "most {} positions",
                      request.cache_tokens, megabytes(static_cast<uint64_t>(most) * block_bytes),
                      megabytes(request.available), megabytes(static_cast<uint64_t>(fitting) * block_bytes),
                      fitting * kBlockSize));
    }
    plan.blocks = static_cast<int>(most);
    return plan;
  }
  plan.blocks = static_cast<int>(std::min(most, least * request.max_batch));
  return plan;
}

}  // namespace qwench
