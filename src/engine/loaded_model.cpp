#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "backend/device.h"
#include "checkpoint/expected_tensors.h"
#include "checkpoint/quantization_name.h"
#include "core/memory.h"
#include "engine/embedding.h"
#include "engine/model_plan.h"
#include "engine/request_check.h"
#include "hub/cache.h"
#include "kernels/quantize.h"

namespace qwench {
namespace {

constexpr int kLargestContext = 1 << 24;
constexpr int kLargestQueue = 1 << 20;

const EngineOptions& checked(const EngineOptions& options) {
  check_range("threads", options.threads, 0, 1024);
  check_range("context", options.context, 0, kLargestContext);
  check_range("max_batch", options.max_batch, 0, 4096);
  check_range("max_batch_tokens", options.max_batch_tokens, 0, 65536);
  check_range("speculation.draft_tokens", options.speculation.draft_tokens, 0, 64);
  check_range("speculation.min_match", options.speculation.min_match, 1, 64);
  check_range("speculation.max_match", options.speculation.max_match, options.speculation.min_match, 64);
  if (options.cache_tokens < 0 || options.cache_tokens > int64_t{1} << 30)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("cache_tokens is {}, but must be from 0 to 2^30", options.cache_tokens));
  check_range("max_queue", options.max_queue, 0, kLargestQueue);
  if (options.dtype && is_quantized(*options.dtype) && !can_quantize(*options.dtype)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("weights cannot be converted to {}; choose f32, bf16, f16, q8_0, q4_0 or q4_k",
                            name(*options.dtype)));
  }
  return options;
}

/// In seconds since 1970; 0 where none is there any more.
int64_t newest_time(const std::vector<std::filesystem::path>& files) {
  int64_t newest = 0;
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    const auto written = std::filesystem::last_write_time(file, error);
    if (error) continue;
    const auto time = std::chrono::file_clock::to_sys(written).time_since_epoch();
    newest = std::max<int64_t>(newest, std::chrono::floor<std::chrono::seconds>(time).count());
  }
  return newest;
}

}  // namespace

LoadedModel::LoadedModel(const std::filesystem::path& path, const EngineOptions& options)
    : checkpoint_(Checkpoint::open(path)), pool_(thread_count(checked(options).threads)) {
  // Tokenizer tables are read while the weights are.
  std::future<ModelText> text =
      std::async(std::launch::async, [this] { return ModelText::open(*checkpoint_); });
  check_tensors(*checkpoint_);
  options_ = options;
  options_.progress = {};
  device_ = choose_device(options.device);
  if (!device_ && (options.gpu_layers || options.device_memory > 0)) {
    throw Error(ErrorKind::invalid_argument,
                "layers on a device and its memory were asked for, but the model runs on the CPU; name a "
                "device (--device vulkan)");
  }
  const ModelPlan plan =
      device_ ? plan_model(*checkpoint_, options, qwench::device_memory(*device_, options), &*device_)
              : plan_model(*checkpoint_, options, available_memory());
  plan_ = plan.memory;
  if (plan.gpu_layers < plan.layers) gpu_layers_ = plan.gpu_layers;
  info_.max_batch = plan.max_batch;
  info_.max_batch_tokens = plan.max_batch_tokens;
  put_on_device(options.progress);
  text_ = text.get();
  describe(path);
  prepare_generation();
  generation_.speculation = options.speculation;
}

void LoadedModel::put_on_device(const std::function<void(double)>& progress) {
  DeviceOptions on_device;
  on_device.dtype = options_.dtype;
  on_device.packed_bf16 = options_.packed_bf16;
  on_device.pack_later = options_.quick_start;
  on_device.memory = options_.device_memory;
  on_device.gpu_layers = gpu_layers_;
  backend_ = make_backend(device_, on_device, pool_);
  decoder_.emplace(config(), DecoderWeights::load(*checkpoint_, *backend_, options_.dtype, progress),
                   *backend_, info_.max_batch_tokens, plan_.logit_rows);
  cache_ = backend_->make_kv_cache(options_.cells(stored_type(*checkpoint_)), config().num_layers,
                                   plan_.blocks, config().num_kv_heads, config().head_dim);
}

void LoadedModel::load_again() {
  cache_.reset();
  decoder_.reset();
  backend_.reset();
  put_on_device({});
}

void LoadedModel::describe(const std::filesystem::path& path) {
  const WeightTotals weights = totals(decoder_->weights());
  info_.path = path;
  const std::filesystem::path absolute = std::filesystem::absolute(path).lexically_normal();
  info_.name = (absolute.has_filename() ? absolute : absolute.parent_path()).stem().string();
  if (!checkpoint_->gguf()) {
    const std::filesystem::path folder = absolute.has_filename() ? absolute : absolute.parent_path();
    const std::string pulled = hub::name_of_snapshot(folder);
    info_.name = pulled.empty() ? folder.filename().string() : pulled;
  }
  info_.family = config().family;
  info_.format = checkpoint_->format();
  info_.weight_type = name(weights.main_type);
  info_.device = backend_->description();
  info_.threads = pool_.size();
  info_.context = plan_.context;
  info_.max_context = static_cast<int>(std::min<int64_t>(config().max_position, kLargestContext));
  info_.vocab_size = config().vocab_size;
  info_.embedding_size = config().hidden_size;
  info_.pooling = pooling_of(*checkpoint_);
  info_.parameters = weights.parameters;
  info_.weight_bytes = weights.bytes_per_token;
  info_.kv_bytes_per_token = plan_.kv_per_token;
  info_.quantization = quantization_name(*checkpoint_);
  info_.file_bytes = checkpoint_->bytes();
  info_.file_time = newest_time(checkpoint_->files());
}

uint64_t LoadedModel::prefix_salt(int prompt_length) const {
  const RopeConfig& rope = config().rope;
  const bool stretched = rope.type == RopeConfig::Type::dynamic && prompt_length > rope.original_max_position;
  return stretched ? static_cast<uint64_t>(prompt_length) : 0;
}

void LoadedModel::prepare_generation() {
  auto vocabulary = std::make_shared<SamplerVocabulary>();
  vocabulary->valid_ids = info_.vocab_size;
  if (const auto& tokenizer = text_.tokenizer()) {
    vocabulary->valid_ids = std::min(info_.vocab_size, tokenizer->size());
    for (TokenId id = 0; id < vocabulary->valid_ids; ++id) {
      if (!tokenizer->has(id)) vocabulary->excluded.push_back(id);
    }
  }
  generation_.tokenizer = text_.tokenizer();
  if (generation_.tokenizer)
    generation_.constraints = std::make_shared<Constraints>(generation_.tokenizer, vocabulary->valid_ids);
  generation_.vocabulary = std::move(vocabulary);
  generation_.defaults = checkpoint_->generation().sampling;
  generation_.max_new_tokens = checkpoint_->generation().max_new_tokens;
  generation_.context = plan_.context;
  std::vector<TokenId> stop_ids = checkpoint_->stop_token_ids();
  const std::vector<TokenId> from_text = text_.stop_ids();
  stop_ids.insert(stop_ids.end(), from_text.begin(), from_text.end());
  std::sort(stop_ids.begin(), stop_ids.end());
  stop_ids.erase(std::unique(stop_ids.begin(), stop_ids.end()), stop_ids.end());
  generation_.stop_ids = std::move(stop_ids);
}

}  // namespace qwench
