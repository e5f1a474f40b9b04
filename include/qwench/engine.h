#pragma once

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

#include "qwench/dtype.h"
#include "qwench/error.h"
#include "qwench/sampling.h"

namespace qwench {

class ChatTemplates;
class Tokenizer;
struct ChatTemplateInput;

/// How a model is loaded.
struct EngineOptions {
  std::optional<DType> dtype;  ///< keep matrices as f32, bf16 or f16; as they are stored when absent
  /// Cells of the KV cache: f16, f32, bf16, or q8_0 where head_dim is a multiple of 32. When absent: f16, or
  /// f32 where `dtype` is f32, so that all is computed in f32.
  std::optional<DType> kv_dtype;
  int threads = 0;     ///< 0: the cores this process may use; no more than 8 or the cores work
  int context = 0;     ///< positions a sequence may have; 0: the model's own limit, or what fits memory
  int max_batch = 64;  ///< sequences that run at once; others wait
  int max_batch_tokens = 512;            ///< rows of one forward pass
  std::function<void(double)> progress;  ///< called while loading with the share done, 0 to 1

  /// What kv_dtype stands for.
  DType cells() const { return kv_dtype.value_or(dtype == DType::f32 ? DType::f32 : DType::f16); }
};

/// What was loaded.
struct ModelInfo {
  std::string name;  ///< the folder's or file's name
  std::filesystem::path path;
  std::string family;       ///< "qwen3"
  std::string format;       ///< "safetensors", "gguf v3"
  std::string weight_type;  ///< of most bytes among the layers' matrices: "bf16"
  std::string device;       ///< "CPU (AVX2)"
  int threads = 0;
  int context = 0;            ///< positions a sequence may have
  int max_context = 0;        ///< the model's own limit of them
  int vocab_size = 0;         ///< rows of the head; the tokenizer may have fewer ids
  int64_t parameters = 0;     ///< a tied embedding counts once
  uint64_t weight_bytes = 0;  ///< bytes of weights read for one token: all but the embedding's unused rows
  uint64_t kv_bytes_per_token = 0;
};

enum class FinishReason { stop, length, cancelled, error };
std::string_view name(FinishReason reason) noexcept;

/// One prompt and what to do with it.
struct Request {
  std::vector<TokenId> ids;  ///< the prompt; not empty
  SamplingOptions sampling;  ///< over the model's generation_config.json, over the built-in defaults
  StopParams stop;
  std::optional<int>
      logprobs;  ///< alternatives reported with each token's log-probability, 0 to 20; absent: none
  bool skip_special_tokens = true;  ///< special tokens leave no text
};

struct TokenLogprob {
  TokenId id;
  float logprob;                               ///< natural logarithm, of the raw logits' softmax
  std::vector<std::pair<TokenId, float>> top;  ///< the best alternatives, best first
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
};

struct Timings {
  double prefill_seconds = 0;  ///< from the start of the call to the first token
  double decode_seconds = 0;   ///< from the first token to the last
};

struct Result {
  std::optional<std::string> text;  ///< absent when the model has no tokenizer
  std::vector<TokenId> ids;         ///< the output; the stop id, where one ended it, is included
  FinishReason finish_reason = FinishReason::stop;
  std::string error;  ///< the sentence, where finish_reason is error
  Usage usage;
  std::vector<TokenLogprob> logprobs;
  Timings timings;
};

/// A piece of one request's output as it appears.
struct Delta {
  size_t request;  ///< index into the call's requests
  std::string_view text;
  TokenId id;  ///< the token that released it; -1 for what the end releases
};

/// log p(ids[t+1] | ids[0..t]) for every t, and the best next tokens after the last id.
struct Score {
  std::vector<float> logprobs;                 // [ids - 1]
  std::vector<std::pair<TokenId, float>> top;  // best first
};

/// A loaded model. Calls may come from one thread at a time.
class Engine {
 public:
  /// `model` is a Hugging Face folder or a GGUF file. Throws Error.
  static std::unique_ptr<Engine> load(const std::filesystem::path& model, const EngineOptions& options = {});
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

  /// Throws Error (invalid_argument) as generate would report it: empty or too long prompt, an id that does
  /// not exist, a setting out of range.
  void check(const Request& request) const;

  /// Runs all requests as one batch; results come in the order of the requests. A request that cannot run
  /// gives a Result with an error and disturbs no other. `on_delta` is called from this thread. A stop
  /// request ends all with what they have (FinishReason::cancelled).
  std::vector<Result> generate(std::span<const Request> requests,
                               const std::function<void(const Delta&)>& on_delta = {},
                               const std::stop_token& stop = {});

  /// Throws Error (invalid_argument, numeric).
  Score score(std::span<const TokenId> ids, int top = 10);

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace qwench
