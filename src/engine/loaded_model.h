#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "backend/device.h"
#include "checkpoint/checkpoint.h"
#include "core/thread_pool.h"
#include "engine/generation.h"
#include "engine/model_text.h"
#include "model/decoder.h"
#include "model/memory_plan.h"
#include "qwench/engine.h"

namespace qwench {

/// A model with all it runs on: weights, buffers, the cells of its KV cache, tokenizer and templates. What
/// computes is used by one thread at a time; the rest is immutable and thread-safe.
class LoadedModel {
 public:
  /// Throws Error.
  LoadedModel(const std::filesystem::path& path, const EngineOptions& options);

  const ModelInfo& info() const { return info_; }
  const ModelText& text() const { return text_; }
  const GenerationContext& generation() const { return generation_; }
  const ModelConfig& config() const { return checkpoint_->config(); }
  /// Sequences with the same one have the same keys and values where their tokens begin alike: dynamic RoPE
  /// scaling makes those depend on the length of a long prompt.
  uint64_t prefix_salt(int prompt_length) const;
  int blocks() const { return plan_.blocks; }  ///< of the KV cache

  /// Puts the model on its device anew, whose memory was lost: weights, buffers and an empty cache. Throws
  /// Error.
  void load_again();

  Decoder& decoder() { return *decoder_; }
  Backend& backend() { return *backend_; }
  KvCache& cache() { return *cache_; }
  ThreadPool& threads() { return pool_; }

 private:
  void put_on_device(const std::function<void(double)>& progress);
  void describe(const std::filesystem::path& path);
  void prepare_generation();

  std::shared_ptr<const Checkpoint> checkpoint_;
  ModelText text_;
  ThreadPool pool_;
  EngineOptions options_;
  std::optional<DeviceInfo> device_;  // empty: the CPU
  std::optional<int> gpu_layers_;     // of those that stay on the device, where not all do
  MemoryPlan plan_;
  std::unique_ptr<Backend> backend_;
  std::optional<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
  ModelInfo info_;
  GenerationContext generation_;
};

}  // namespace qwench
