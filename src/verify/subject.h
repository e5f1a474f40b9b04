#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/thread_pool.h"
#include "model/decoder.h"

namespace qwench {

/// How a model is set up to be examined.
struct SubjectOptions {
  std::optional<DType> dtype;   ///< as EngineOptions::dtype
  bool packed_bf16 = false;     ///< as EngineOptions::packed_bf16
  DType kv_dtype = DType::f32;  ///< cells of the KV cache; f32 as references have
  int threads = 0;              ///< 0: the cores this process may use
  std::string device = "cpu";   ///< as EngineOptions::device, and the two below
  std::optional<int> gpu_layers;
  uint64_t device_memory = 0;
  int positions = 1;   ///< positions that a sequence may have; at most the model's own limit
  int sequences = 1;   ///< sequences that have room in the cache
  int max_rows = 256;  ///< rows of one forward pass
  std::function<void(double)> progress;  ///< called while loading with the share done, 0 to 1
  /// Puts a backend around the one that computes, e.g. to watch it.
  std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)> decorate;
};

/// A decoder with a cache of its own, laid open: the examinations of this folder drive it pass by pass and
/// look at all logits and at the states between the layers, which Engine does not show. Used by one thread at
/// a time.
class Subject {
 public:
  /// Loads `checkpoint`, which is shared with other subjects of the same model. Throws Error:
  /// invalid_argument for more positions than the model has, out_of_memory where it does not fit.
  Subject(std::shared_ptr<const Checkpoint> checkpoint, const SubjectOptions& options);

  const ModelConfig& config() const { return checkpoint_->config(); }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  Backend& backend() { return *backend_; }
  Decoder& decoder() { return *decoder_; }
  KvCache& cache() { return *cache_; }
  int threads() const { return pool_.size(); }
  int positions() const { return positions_; }
  size_t vocab() const { return static_cast<size_t>(config().vocab_size); }

  /// The blocks of sequence `index`, in ascending order; shuffled ones are the caller's to make.
  std::span<const int32_t> blocks(int index = 0) const;

  /// Throws Error (invalid_argument) where an id is not in the vocabulary or there are more than positions().
  void check(std::span<const TokenId> ids) const;
  /// Throws Error (invalid_argument) where an id is not in the vocabulary, however many there are.
  void check_vocabulary(std::span<const TokenId> ids) const;

  /// One pass; at most decoder().max_tokens() rows. The logits asked for can be read by logits().
  void forward(std::span<const SequenceInput> inputs) { decoder_->forward(inputs, *cache_); }
  /// Calls f(row, logits [vocab]) for each row of logits of the last pass.
  void for_each_logits(const std::function<void(int row, std::span<const float> logits)>& f);
  /// Logits [rows, vocab] of the last pass.
  std::vector<float> logits();

  /// Runs ids [start, ids.size()), whose earlier positions are in the cache already, in passes of at most
  /// `chunk` rows (0: as many as one pass takes) and calls f(position, logits [vocab]) for each position from
  /// `first_logits` on.
  void run(std::span<const TokenId> ids, int start, int chunk, int first_logits,
           const std::function<void(int position, std::span<const float> logits)>& f);

  /// The most probable continuation: `count` ids after `ids`, decoded one by one with the cache.
  std::vector<TokenId> greedy(std::span<const TokenId> ids, int count);

  /// Values [rows, cols] of a matrix on the host.
  std::vector<float> values_of(const Matrix& matrix);

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  ThreadPool pool_;
  int positions_;
  int blocks_per_sequence_;
  std::unique_ptr<Backend> backend_;
  std::optional<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
  std::vector<int32_t> blocks_;    // [sequences, blocks_per_sequence]
  std::vector<float> logits_row_;  // [vocab]
};

/// Looks into a decoder's passes while it lives.
class ScopedProbe {
 public:
  ScopedProbe(Decoder& decoder, Decoder::Probe probe) : decoder_(decoder) {
    decoder_.set_probe(std::move(probe));
  }
  ~ScopedProbe() { decoder_.set_probe({}); }
  ScopedProbe(const ScopedProbe&) = delete;
  ScopedProbe& operator=(const ScopedProbe&) = delete;

 private:
  Decoder& decoder_;
};

/// Bytes that weights take when kept as `dtype` (as stored when absent).
uint64_t kept_weight_bytes(const Checkpoint& checkpoint, std::optional<DType> dtype);

}  // namespace qwench
