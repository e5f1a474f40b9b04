#include "verify/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "backend/device.h"
#include "checkpoint/expected_tensors.h"
#include "core/memory.h"
#include "model/device_weights.h"
#include "model/kept_type.h"
#include "model/memory_plan.h"
#include "qwench/error.h"

namespace qwench {
namespace {

// Rows of logits computed at a time: 40 MB for the largest vocabulary.
constexpr int kLogitRows = 64;

/// Chooses how many layers stay on the device, where not all do, and says in `request` what that takes.
std::optional<int> place_layers(const Checkpoint& checkpoint, const SubjectOptions& options,
                                MemoryRequest& request) {
  const DeviceWeights weights = device_weights(checkpoint, options.dtype);
  request.quantized_weights = false;
  request.reserve = request.available / 16;
  const uint64_t others =
      activation_bytes(checkpoint.config(), request) + *request.reserve +
      2 * static_cast<uint64_t>(checkpoint.config().num_layers) * static_cast<uint64_t>(request.max_batch) *
          (static_cast<uint64_t>(request.context) + kBlockSize) *
          bytes_of(request.kv_dtype, static_cast<uint64_t>(checkpoint.config().num_kv_heads) *
                                         static_cast<uint64_t>(checkpoint.config().head_dim));
  int resident = options.gpu_layers.value_or(weights.count());
  if (resident < 0 || resident > weights.count()) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} layers were asked to stay on the device, but the model has {}", resident,
                            weights.count()));
  }
  const auto taken = [&](int layers) { return weights.resident(layers) + weights.slots(layers); };
  while (!options.gpu_layers && resident > 0 && taken(resident) + others > request.available) --resident;
  request.weights = taken(resident);
  return resident == weights.count() ? std::nullopt : std::optional(resident);
}

}  // namespace

uint64_t kept_weight_bytes(const Checkpoint& checkpoint, std::optional<DType> dtype) {
  uint64_t bytes = 0;
  for (const TensorView& tensor : checkpoint.tensors())
    bytes += bytes_of(kept_type(tensor, dtype), static_cast<uint64_t>(tensor.count()));
  return bytes;
}

Subject::Subject(std::shared_ptr<const Checkpoint> checkpoint, const SubjectOptions& options)
    : checkpoint_(std::move(checkpoint)),
      pool_(options.threads > 0 ? options.threads : available_cores()),
      positions_(options.positions),
      blocks_per_sequence_((options.positions + kBlockSize - 1) / kBlockSize) {
  check_tensors(*checkpoint_);
  const ModelConfig& model = config();
  const int max_rows = std::max(options.max_rows, options.sequences);
  const int logit_rows = std::min(kLogitRows, max_rows);
  MemoryRequest request{.weights = kept_weight_bytes(*checkpoint_, options.dtype),
                        .quantized_weights = true,  // or not: a few MB at most
                        .kv_dtype = options.kv_dtype,
                        .context = options.positions,
                        .max_batch = options.sequences,
                        .max_batch_tokens = max_rows,
                        .max_logit_rows = logit_rows,
                        .available = available_memory()};
  const std::optional<DeviceInfo> device = choose_device(options.device);
  DeviceOptions on_device;
  on_device.dtype = options.dtype;
  on_device.packed_bf16 = options.packed_bf16;
  on_device.memory = options.device_memory;
  if (device) {
    request.available = options.device_memory > 0 ? options.device_memory : device->budget;
    on_device.gpu_layers = place_layers(*checkpoint_, options, request);
  } else if (options.gpu_layers || options.device_memory > 0) {
    throw Error(
        ErrorKind::invalid_argument,
        "layers on a device and its memory were asked for, but the model runs on the CPU; name a device "
        "(--device vulkan)");
  }
  const MemoryPlan plan = plan_memory(model, request);
  const int blocks = blocks_per_sequence_ * options.sequences;
  if (plan.blocks < blocks) {
    throw Error(ErrorKind::out_of_memory,
                fmt::format("the keys and values of {} sequences of {} positions do not fit the memory there "
                            "is, which holds {} positions",
                            options.sequences, options.positions, plan.blocks * kBlockSize));
  }
  backend_ = make_backend(device, on_device, pool_);
  if (options.decorate) backend_ = options.decorate(std::move(backend_));
  decoder_.emplace(model, DecoderWeights::load(*checkpoint_, *backend_, options.dtype, options.progress),
                   *backend_, max_rows, logit_rows);
  cache_ =
      backend_->make_kv_cache(options.kv_dtype, model.num_layers, blocks, model.num_kv_heads, model.head_dim);
  blocks_.resize(static_cast<size_t>(blocks));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  logits_row_.resize(vocab());
}

std::span<const int32_t> Subject::blocks(int index) const {
  const auto each = static_cast<size_t>(blocks_per_sequence_);
  return std::span(blocks_).subspan(static_cast<size_t>(index) * each, each);
}

void Subject::check(std::span<const TokenId> ids) const {
  if (ids.empty()) throw Error(ErrorKind::invalid_argument, "there are no tokens: at least one is needed");
  if (ids.size() > static_cast<size_t>(positions_)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("there are {} tokens, but room for {}", ids.size(), positions_));
  }
  check_vocabulary(ids);
}

void Subject::check_vocabulary(std::span<const TokenId> ids) const {
  for (const TokenId id : ids) {
    if (id < 0 || id >= config().vocab_size) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("token id {} is not in the vocabulary of {} ids", id, config().vocab_size));
    }
  }
}

void Subject::for_each_logits(const std::function<void(int, std::span<const float>)>& f) {
  const int rows = decoder_->logit_rows();
  for (int first = 0; first < rows; first += decoder_->max_logit_rows()) {
    const int count = std::min(rows - first, decoder_->max_logit_rows());
    const Matrix& slice = decoder_->logits(first, count);
    for (int row = 0; row < count; ++row) {
      backend_->read_row(slice, row, logits_row_);
      f(first + row, logits_row_);
    }
  }
}

std::vector<float> Subject::logits() {
  std::vector<float> all;
  all.reserve(static_cast<size_t>(decoder_->logit_rows()) * vocab());
  for_each_logits([&](int, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); });
  return all;
}

void Subject::run(std::span<const TokenId> ids, int start, int chunk, int first_logits,
                  const std::function<void(int, std::span<const float>)>& f) {
  check(ids);
  const int length = static_cast<int>(ids.size());
  const int most = chunk > 0 ? std::min(chunk, decoder_->max_tokens()) : decoder_->max_tokens();
  while (start < length) {
    int rows = std::min(most, length - start);
    // A pass gives the logits of all its rows or of none, but for the last.
    if (start < first_logits) rows = std::min(rows, first_logits - start);
    const bool wanted = start >= first_logits;
    const SequenceInput input{ids.subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
                              start,
                              length,
                              blocks(),
                              wanted,
                              wanted};
    forward(std::span(&input, 1));
    if (wanted) {
      for_each_logits([&](int row, std::span<const float> logits) { f(start + row, logits); });
    }
    start += rows;
  }
}

std::vector<TokenId> Subject::greedy(std::span<const TokenId> prompt, int count) {
  check(prompt);
  std::vector<TokenId> ids(prompt.begin(), prompt.end());
  const int prompt_length = static_cast<int>(ids.size());
  if (prompt_length + count > positions_ + 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a prompt of {} tokens and {} more do not fit {} positions", prompt_length, count,
                            positions_));
  }
  int start = 0;
  while (static_cast<int>(ids.size()) < prompt_length + count) {
    while (start < static_cast<int>(ids.size())) {
      const int rows = std::min(static_cast<int>(ids.size()) - start, decoder_->max_tokens());
      const SequenceInput input{
          std::span<const TokenId>(ids).subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
          start,
          prompt_length,
          blocks(),
          false,
          start + rows == static_cast<int>(ids.size())};
      forward(std::span(&input, 1));
      start += rows;
    }
    std::array<TokenId, 1> best{};
    backend_->argmax(decoder_->logits(0, 1), config().vocab_size, best);
    if (best[0] < 0) {
      throw Error(
          ErrorKind::numeric,
          "the model gave logits that are not finite; its weights or this engine's arithmetic are broken");
    }
    ids.push_back(best[0]);
  }
  return {ids.begin() + prompt_length, ids.end()};
}

std::vector<float> Subject::values_of(const Matrix& matrix) {
  const auto cols = static_cast<size_t>(matrix.cols);
  std::vector<float> values(static_cast<size_t>(matrix.rows) * cols);
  for (int row = 0; row < matrix.rows; ++row)
    backend_->read_row(matrix, row, std::span(values).subspan(static_cast<size_t>(row) * cols, cols));
  return values;
}

}  // namespace qwench
