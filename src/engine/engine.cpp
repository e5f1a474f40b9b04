#include "qwench/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/expected_tensors.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "engine/generation.h"
#include "engine/logprobs.h"
#include "engine/model_plan.h"
#include "engine/model_text.h"
#include "engine/sampler.h"
#include "engine/sampling_options.h"
#include "engine/scheduler.h"
#include "hub/cache.h"
#include "model/block_pool.h"
#include "model/decoder.h"
#include "model/memory_plan.h"

namespace qwench {
namespace {

constexpr int kLargestContext = 1 << 24;

void check_range(const char* name, int value, int low, int high) {
  if (value < low || value > high) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} is {}, but must be from {} to {}", name, value, low, high));
  }
}

void check_options(const EngineOptions& options) {
  check_range("threads", options.threads, 0, 1024);
  check_range("context", options.context, 0, kLargestContext);
  check_range("max_batch", options.max_batch, 1, 4096);
  check_range("max_batch_tokens", options.max_batch_tokens, 1, 65536);
  if (options.dtype && is_quantized(*options.dtype)) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("weights cannot be converted to {}; choose f32, bf16 or f16", name(*options.dtype)));
  }
}

std::string tokens(size_t count) { return fmt::format("{} token{}", count, count == 1 ? "" : "s"); }

/// Gives blocks of the cache back when it goes out of scope.
class BlockLease {
 public:
  BlockLease(BlockPool& pool, int positions) : pool_(pool) {
    const int count = (positions + kBlockSize - 1) / kBlockSize;
    for (int i = 0; i < count; ++i) blocks_.push_back(pool.allocate());
  }
  BlockLease(BlockLease&& other) noexcept : pool_(other.pool_), blocks_(std::move(other.blocks_)) {}
  BlockLease(const BlockLease&) = delete;
  BlockLease& operator=(const BlockLease&) = delete;
  BlockLease& operator=(BlockLease&&) = delete;
  ~BlockLease() {
    for (const int32_t block : blocks_) pool_.release(block);
  }
  std::span<const int32_t> table() const { return blocks_; }

 private:
  BlockPool& pool_;
  std::vector<int32_t> blocks_;
};

}  // namespace

class Engine::Impl {
 public:
  Impl(const std::filesystem::path& path, const EngineOptions& options)
      : max_batch_(options.max_batch),
        checkpoint_(Checkpoint::open(path)),
        text_(ModelText::open(*checkpoint_)),
        pool_(thread_count(options.threads)) {
    const ModelConfig& config = checkpoint_->config();
    check_tensors(*checkpoint_);
    plan_ = plan_model(*checkpoint_, options, available_memory()).memory;
    backend_ = make_cpu_backend(pool_);
    decoder_.emplace(config, DecoderWeights::load(*checkpoint_, *backend_, options.dtype, options.progress),
                     *backend_, options.max_batch_tokens, plan_.logit_rows);
    cache_ = backend_->make_kv_cache(options.cells(), config.num_layers, plan_.blocks, config.num_kv_heads,
                                     config.head_dim);
    blocks_.emplace(plan_.blocks);
    describe(path);
    prepare_generation();
    logits_.resize(static_cast<size_t>(config.vocab_size));
  }

  const ModelInfo& info() const { return info_; }
  const ModelText& text() const { return text_; }
  const GenerationContext& generation() const { return generation_; }

  void check(const Request& request) const {
    check_prompt(request.ids);
    if (static_cast<int64_t>(request.ids.size()) >= info_.context) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("the prompt has {}, but the context holds {} with at least one to answer in{}",
                              tokens(request.ids.size()), info_.context, what_to_shorten("prompt")));
    }
    [[maybe_unused]] const Sampler accepted(request.sampling.over(generation_.defaults).resolve(),
                                            generation_.vocabulary, {});
    qwench::check(request.stop);
    if (!request.stop.stop.empty() && text_.tokenizer() == nullptr) {
      throw Error(ErrorKind::invalid_argument,
                  "stop: the model has no tokenizer, so its output is no text that could hold one; use "
                  "stop_token_ids");
    }
    if (request.logprobs) check_range("logprobs", *request.logprobs, 0, 20);
  }

  std::vector<Result> generate(std::span<const Request> requests,
                               const std::function<void(const Delta&)>& on_delta,
                               const std::stop_token& stop);
  Score score(std::span<const TokenId> ids, int top);

 private:
  void describe(const std::filesystem::path& path);
  void prepare_generation();
  void check_prompt(std::span<const TokenId> ids) const;
  std::string what_to_shorten(std::string_view what) const;
  void draw(std::span<Generation* const> drawing, const std::function<void(const Delta&)>& on_delta);

  const int max_batch_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  ModelText text_;
  ThreadPool pool_;
  MemoryPlan plan_;
  std::unique_ptr<Backend> backend_;
  std::optional<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
  std::optional<BlockPool> blocks_;
  ModelInfo info_;
  GenerationContext generation_;
  SamplerScratch scratch_;
  std::vector<float> logits_;  // [vocab]: one row on the host
  std::vector<TokenId> argmax_;
};

void Engine::Impl::describe(const std::filesystem::path& path) {
  const ModelConfig& config = checkpoint_->config();
  const WeightTotals weights = totals(decoder_->weights());
  info_.path = path;
  const std::filesystem::path absolute = std::filesystem::absolute(path).lexically_normal();
  info_.name = (absolute.has_filename() ? absolute : absolute.parent_path()).stem().string();
  if (!checkpoint_->gguf()) {
    const std::filesystem::path folder = absolute.has_filename() ? absolute : absolute.parent_path();
    const std::string pulled = hub::name_of_snapshot(folder);
    info_.name = pulled.empty() ? folder.filename().string() : pulled;
  }
  info_.family = config.family;
  info_.format = checkpoint_->format();
  info_.weight_type = name(weights.main_type);
  info_.device = backend_->description();
  info_.threads = pool_.size();
  info_.context = plan_.context;
  info_.max_context = static_cast<int>(std::min<int64_t>(config.max_position, kLargestContext));
  info_.vocab_size = config.vocab_size;
  info_.parameters = weights.parameters;
  info_.weight_bytes = weights.bytes_per_token;
  info_.kv_bytes_per_token = plan_.kv_per_token;
}

void Engine::Impl::prepare_generation() {
  auto vocabulary = std::make_shared<SamplerVocabulary>();
  vocabulary->valid_ids = info_.vocab_size;
  if (const auto& tokenizer = text_.tokenizer()) {
    vocabulary->valid_ids = std::min(info_.vocab_size, tokenizer->size());
    for (TokenId id = 0; id < vocabulary->valid_ids; ++id) {
      if (!tokenizer->has(id)) vocabulary->excluded.push_back(id);
    }
  }
  generation_.tokenizer = text_.tokenizer();
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

void Engine::Impl::check_prompt(std::span<const TokenId> ids) const {
  if (ids.empty())
    throw Error(ErrorKind::invalid_argument, "the prompt is empty: at least one token is needed");
  for (const TokenId id : ids) {
    if (id < 0 || id >= info_.vocab_size) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("token id {} is not in the vocabulary of {} ids", id, info_.vocab_size));
    }
  }
}

/// The end of a sentence about something that is longer than the context.
std::string Engine::Impl::what_to_shorten(std::string_view what) const {
  if (info_.context >= info_.max_context)
    return fmt::format(", which is the model's limit; shorten the {}", what);
  return fmt::format("; shorten the {} or load the model with a longer context (-c), of at most {}", what,
                     info_.max_context);
}

std::vector<Result> Engine::Impl::generate(std::span<const Request> requests,
                                           const std::function<void(const Delta&)>& on_delta,
                                           const std::stop_token& stop) {
  std::vector<Result> results(requests.size());
  std::vector<std::unique_ptr<Generation>> generations(requests.size());
  Scheduler scheduler(*blocks_, max_batch_, decoder_->max_tokens());
  const auto end = [&](Generation& generation) {
    const size_t index = generation.sequence().request;
    scheduler.remove(generation.sequence());
    const std::string tail = generation.finish_text();
    if (on_delta && !tail.empty()) on_delta({index, tail, -1});
    results[index] = generation.take_result();
    generations[index].reset();
  };

  for (size_t i = 0; i < requests.size(); ++i) {
    try {
      check(requests[i]);
      generations[i] = std::make_unique<Generation>(requests[i], i, generation_);
    } catch (const Error& error) {
      results[i].finish_reason = FinishReason::error;
      results[i].error = error.what();
      continue;
    }
    if (generations[i]->finished()) {
      end(*generations[i]);
    } else {
      scheduler.add(generations[i]->sequence());
    }
  }

  std::vector<SequenceInput> inputs;
  std::vector<Generation*> drawing;
  while (!scheduler.empty()) {
    if (stop.stop_requested()) {
      for (const auto& generation : generations) {
        if (!generation) continue;
        generation->cancel();
        end(*generation);
      }
      break;
    }
    const std::span<const ScheduledRows> scheduled = scheduler.schedule();
    inputs.clear();
    drawing.clear();
    for (const ScheduledRows& part : scheduled) {
      const Sequence& sequence = *part.sequence;
      inputs.push_back({std::span(sequence.ids)
                            .subspan(static_cast<size_t>(sequence.computed), static_cast<size_t>(part.rows)),
                        sequence.computed, sequence.prompt_length, sequence.block_table, false,
                        part.draws()});
      if (part.draws()) drawing.push_back(generations[sequence.request].get());
    }
    decoder_->forward(inputs, *cache_);
    scheduler.commit(scheduled);
    draw(drawing, on_delta);
    for (Generation* generation : drawing) {
      if (generation->finished()) end(*generation);
    }
  }
  return results;
}

void Engine::Impl::draw(std::span<Generation* const> drawing,
                        const std::function<void(const Delta&)>& on_delta) {
  for (size_t first = 0; first < drawing.size(); first += static_cast<size_t>(decoder_->max_logit_rows())) {
    const size_t count = std::min(drawing.size() - first, static_cast<size_t>(decoder_->max_logit_rows()));
    const std::span slice = drawing.subspan(first, count);
    const Matrix& logits = decoder_->logits(static_cast<int>(first), static_cast<int>(count));
    argmax_.resize(count);
    if (std::any_of(slice.begin(), slice.end(), [](const Generation* g) { return g->takes_argmax(); })) {
      backend_->argmax(logits, generation_.vocabulary->valid_ids, argmax_);
    }
    for (size_t i = 0; i < count; ++i) {
      Generation& generation = *slice[i];
      std::string text;
      if (generation.takes_argmax()) {
        text = generation.take_argmax(argmax_[i]);
      } else {
        backend_->read_row(logits, static_cast<int>(i), logits_);
        text = generation.take_logits(logits_, scratch_);
      }
      const Sequence& sequence = generation.sequence();
      if (on_delta) on_delta({sequence.request, text, sequence.ids.back()});
    }
  }
}

Score Engine::Impl::score(std::span<const TokenId> ids, int top) {
  check_prompt(ids);
  check_range("top", top, 0, info_.vocab_size);
  const int length = static_cast<int>(std::min<size_t>(ids.size(), 1 << 30));
  if (length > info_.context) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} to score, but the context holds {}{}", tokens(ids.size()), info_.context,
                            what_to_shorten("text")));
  }
  const BlockLease lease(*blocks_, length);
  Score score;
  score.logprobs.reserve(ids.size() - 1);
  for (int start = 0; start < length; start += decoder_->max_tokens()) {
    const int rows = std::min(length - start, decoder_->max_tokens());
    const SequenceInput input{ids.subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
                              start,
                              length,
                              lease.table(),
                              true,
                              true};
    decoder_->forward(std::span(&input, 1), *cache_);
    for (int row = 0; row < rows; ++row) {
      const int slice = row % decoder_->max_logit_rows();
      const Matrix& logits = slice == 0
                                 ? decoder_->logits(row, std::min(rows - row, decoder_->max_logit_rows()))
                                 : decoder_->last_logits();
      backend_->read_row(logits, slice, logits_);
      const int next = start + row + 1;
      if (next < length) {
        const TokenId id = ids[static_cast<size_t>(next)];
        score.logprobs.push_back(
            static_cast<float>(static_cast<double>(logits_[static_cast<size_t>(id)]) - log_sum_exp(logits_)));
      } else {
        score.top = top_logprobs(logits_, top, generation_.vocabulary->valid_ids);
      }
    }
  }
  return score;
}

std::unique_ptr<Engine> Engine::load(const std::filesystem::path& model, const EngineOptions& options) {
  check_options(options);
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(model, options)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

const ModelInfo& Engine::info() const { return impl_->info(); }
const SamplingOptions& Engine::generation_defaults() const { return impl_->generation().defaults; }
std::vector<TokenId> Engine::stop_ids() const { return impl_->generation().stop_ids; }
std::shared_ptr<const Tokenizer> Engine::tokenizer() const { return impl_->text().tokenizer(); }
const ChatTemplates* Engine::chat_templates() const { return impl_->text().templates(); }
std::vector<TokenId> Engine::encode(std::string_view text) const { return impl_->text().encode(text); }
std::vector<TokenId> Engine::encode_chat(const ChatTemplateInput& input,
                                         const std::optional<std::string>& template_name) const {
  return impl_->text().encode_chat(input, template_name);
}
void Engine::check(const Request& request) const { impl_->check(request); }
std::vector<Result> Engine::generate(std::span<const Request> requests,
                                     const std::function<void(const Delta&)>& on_delta,
                                     const std::stop_token& stop) {
  return impl_->generate(requests, on_delta, stop);
}
Score Engine::score(std::span<const TokenId> ids, int top) { return impl_->score(ids, top); }

}  // namespace qwench
