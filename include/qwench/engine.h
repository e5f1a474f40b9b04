#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "qwench/activity.h"
#include "qwench/dtype.h"
#include "qwench/error.h"
#include "qwench/request.h"
#include "qwench/sampling.h"
#include "qwench/stream.h"

namespace qwench {

class ChatTemplates;
class Tokenizer;
struct ChatTemplateInput;

/// Speculative decoding by prompt lookup (Saxena 2023,
/// https://github.com/apoorvumang/prompt-lookup-decoding): what followed the last tokens where they stood
/// before is guessed to follow again, and all guesses are checked in one pass. Changes no token of an answer;
/// faster where answers repeat their prompts or themselves.
struct Speculation {
  int draft_tokens = 0;  ///< guessed at a time, at most; 0: off
  int min_match = 2;     ///< tokens that must have stood there before, at least 1
  int max_match = 4;     ///< the longest match looked for
};

/// How a model is loaded.
struct EngineOptions {
  /// Keep matrices as f32, bf16, f16, q8_0, q4_0 or q4_k; as they are stored when absent.
  std::optional<DType> dtype;
  /// Keep matrices of bf16 in three quarters of their bytes, exactly: answers are the same, decoding is
  /// faster and loading slower. On the CPU alone.
  bool packed_bf16 = false;
  /// For one question at a time: plain weights (f32, f16, bf16) are read from the file for the first token,
  /// which so comes sooner, and packed for speed after it. Answers are the same. On the CPU alone; elsewhere,
  /// and with packed_bf16, nothing changes.
  bool quick_start = false;
  /// Cells of the KV cache: f16, f32, bf16, or q8_0 where head_dim is a multiple of 32. When absent: f16, or
  /// f32 where the weights are kept as f32 (by `dtype`, or as stored), so that all is computed in f32.
  std::optional<DType> kv_dtype;
  int threads = 0;           ///< 0: the cores this process may use; no more than 8 or the cores work
  int context = 0;           ///< positions a sequence may have; 0: the model's own limit, or what fits memory
  int max_batch = 0;         ///< completions that run at once, others wait; 0: up to 64, as memory allows
  int max_batch_tokens = 0;  ///< rows of one forward pass; 0: up to 512, as memory allows
  /// Positions that the KV cache holds in all, at least what one sequence may have; 0: what max_batch
  /// sequences need, or what memory allows.
  int64_t cache_tokens = 0;
  int max_queue = 1024;  ///< completions that may wait beside those that run, for submit()
  Speculation speculation;
  /// Where it runs: "auto" (a discrete GPU, then an integrated one, else the CPU), "cpu", "vulkan" or
  /// "vulkan:N".
  std::string device = "auto";
  std::optional<int>
      gpu_layers;              ///< layers that stay on the device, the others are streamed; absent: what fits
  uint64_t device_memory = 0;  ///< bytes of the device's memory to use; 0: what its driver would give
  std::function<void(double)> progress;  ///< called while loading with the share done, 0 to 1

  /// What kv_dtype stands for, of a model whose weights are stored so.
  DType cells(DType stored) const {
    return kv_dtype.value_or(dtype.value_or(stored) == DType::f32 ? DType::f32 : DType::f16);
  }
};

/// What was loaded.
struct ModelInfo {
  std::string name;  ///< the folder's or file's name
  std::filesystem::path path;
  std::string family;        ///< "qwen3"
  std::string format;        ///< "safetensors", "gguf v3"
  std::string weight_type;   ///< of most bytes among the layers' matrices, as they are kept: "bf16"
  std::string quantization;  ///< of the files, by llama.cpp's name: "Q4_K_M", "BF16"
  std::string device;        ///< "CPU (AVX2)"
  int threads = 0;
  int context = 0;           ///< positions a sequence may have
  int max_context = 0;       ///< the model's own limit of them
  int max_batch = 0;         ///< completions that run at once
  int max_batch_tokens = 0;  ///< rows of one forward pass
  int vocab_size = 0;        ///< rows of the head; the tokenizer may have fewer ids
  int embedding_size = 0;    ///< elements of Result::embedding
  /// Of embeddings: what the model's files ask for, or mean where they say nothing. Absent where they ask for
  /// a kind that is not supported.
  std::optional<Pooling> pooling;
  int64_t parameters = 0;     ///< a tied embedding counts once
  uint64_t weight_bytes = 0;  ///< bytes of weights read for one token: all but the embedding's unused rows
  uint64_t kv_bytes_per_token = 0;
  uint64_t file_bytes = 0;  ///< the size of the weight files
  int64_t file_time = 0;    ///< when the newest of them was written, in seconds since 1970
};

/// What the engine is doing and has done since it was loaded.
struct EngineStats {
  int running = 0;             ///< completions in the batch
  int waiting = 0;             ///< completions in the queue
  int kv_blocks_total = 0;     ///< blocks of kKvBlockTokens positions
  int kv_blocks_used = 0;      ///< held by running completions
  int kv_blocks_cached = 0;    ///< held by nobody, kept for prompts that begin alike
  int64_t passes = 0;          ///< forward passes
  int64_t prefix_queries = 0;  ///< tokens of prompts (again after a preemption) that were looked up
  int64_t prefix_hits = 0;     ///< those that were cached
  int64_t prompt_tokens = 0;   ///< of all requests that began to run
  int64_t generation_tokens = 0;
  int64_t preemptions = 0;
  int64_t draft_tokens = 0;                            ///< proposed by speculative decoding
  int64_t draft_hits = 0;                              ///< those that were right
  int64_t refused_requests = 0;                        ///< by submit(), because the queue was full
  std::array<int64_t, kFinishReasonCount> finished{};  ///< completions, by FinishReason
};

inline constexpr int kKvBlockTokens = 16;

/// A piece of one request's output as it appears in generate(): one token, or what the end releases.
struct Delta {
  size_t request;  ///< index into the call's requests
  std::string_view text;
  TokenId id;     ///< the token; -1 for what the end releases
  int index = 0;  ///< which of the request's n completions
};

/// log p(ids[t+1] | ids[0..t]) for every t, and the best next tokens after the last id.
struct Score {
  std::vector<float> logprobs;                 // [ids - 1]
  std::vector<std::pair<TokenId, float>> top;  // best first
};

/// A loaded model and the thread that owns it. Requests from any number of threads run together, a pass of
/// the model at a time (continuous batching); an answer does not depend on what runs beside it. All functions
/// may be called from any thread.
class Engine {
 public:
  /// `model` is a Hugging Face folder or a GGUF file. Throws Error.
  static std::unique_ptr<Engine> load(const std::filesystem::path& model, const EngineOptions& options = {});
  /// Stops: see stop().
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelInfo& info() const;
  const SamplingOptions& generation_defaults() const;  ///< from generation_config.json
  std::vector<TokenId> stop_ids() const;               ///< the model's own, from every place that names one
  std::shared_ptr<const Tokenizer> tokenizer() const;  ///< null when the checkpoint has none
  const ChatTemplates* chat_templates() const;         ///< null when it has none

  /// The ids of plain text, with the BOS the model asks for. Special-token text is recognised. Throws Error.
  std::vector<TokenId> encode(std::string_view text) const;
  /// The ids of rendered messages; what users typed stays text. bos_token and eos_token are filled in. Throws
  /// Error.
  std::vector<TokenId> encode_chat(const ChatTemplateInput& input,
                                   const std::optional<std::string>& template_name = std::nullopt) const;

  /// Throws Error (invalid_argument) as submit would: empty or too long prompt, an id that does not exist, a
  /// setting out of range.
  void check(const Request& request) const;

  /// Puts a request into the queue and returns at once. Throws Error: invalid_argument for what cannot run,
  /// busy where the queue is full, shutting_down after drain() or stop().
  Stream submit(Request request);

  /// Runs all requests as one batch and waits; results come in the order of the requests, those of the first
  /// request's n completions first. A request that cannot run gives one Result with an error and disturbs no
  /// other. `on_delta` is called from the engine's thread between two passes; what it throws ends the call.
  /// A stop request ends all with what they have (FinishReason::cancelled). The queue's limit does not count.
  std::vector<Result> generate(std::span<const Request> requests,
                               const std::function<void(const Delta&)>& on_delta = {},
                               const std::stop_token& stop = {});

  /// Throws Error (invalid_argument, numeric, shutting_down).
  Score score(std::span<const TokenId> ids, int top = 10);

  EngineStats stats() const;
  EngineActivity activity() const;

  /// Refuses new requests from now on and waits for those there are, for at most `timeout` where there is
  /// one; 0 only refuses. True when nothing is left.
  bool drain(std::optional<std::chrono::nanoseconds> timeout = std::nullopt);
  /// Refuses new requests and ends those there are with what they have (FinishReason::cancelled); returns
  /// when they have ended.
  void stop();

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace qwench
