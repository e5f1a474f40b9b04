#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/model_config.h"
#include "model/decoder_weights.h"
#include "model/rope.h"

namespace qwench {

/// One sequence's new tokens, as the engine hands them to the decoder.
struct SequenceInput {
  std::span<const TokenId> tokens;  // not empty
  int start = 0;                    // position of the first
  int rope_length = 0;              // the prompt's length: dynamic RoPE scaling looks at it (model/rope.h)
  std::span<const int32_t> block_table;  // covers start + tokens.size() positions
  bool all_logits = false;               // logits of every token, or of the last alone
  bool last_logits = true;               // false: of none (a prompt's chunk that is not its last)
};

/// The transformer decoder of Qwen2, Qwen3 and Llama: pre-norm layers of grouped-query attention and a SwiGLU
/// MLP. Written once over the operations of Backend; what families differ in is data (a bias or a norm that
/// is absent). Used by one thread at a time.
class Decoder {
 public:
  /// Called in tests and by verification with intermediate results: "hidden" (the input of layer n; n =
  /// num_layers: the last layer's output), "attn_in", "q", "k", "v", "attn_out", "mlp_out", "norm".
  using Probe = std::function<void(std::string_view name, int layer, const Matrix& value)>;

  /// Reserves every buffer for at most `max_tokens` rows a pass and `max_logit_rows` rows of logits at a
  /// time.
  Decoder(const ModelConfig& config, DecoderWeights weights, Backend& backend, int max_tokens,
          int max_logit_rows);

  /// Runs the layers over all sequences' new tokens, at most max_tokens(), and stores their keys and values
  /// in `cache`.
  void forward(std::span<const SequenceInput> sequences, KvCache& cache);

  /// How many rows of logits the last forward was asked for, in the order of its sequences.
  int logit_rows() const { return static_cast<int>(wanted_rows_.size()); }
  /// Logits [count, vocab] of the wanted rows [first, first + count), count <= max_logit_rows.
  const Matrix& logits(int first, int count);
  /// What the last forward made of every row, behind the final norm: [rows, hidden_size].
  const Matrix& final_hidden() const { return *normed_; }
  const Matrix& last_logits() const { return *logits_; }  // what the last call gave

  int max_tokens() const { return hidden_->capacity; }
  int max_logit_rows() const { return logits_->capacity; }
  const DecoderWeights& weights() const { return weights_; }
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  void attention_block(int layer, KvCache& cache);
  void mlp_block(int layer);
  void prepare_batch(std::span<const SequenceInput> sequences);
  void set_rows(int rows);
  void probe(std::string_view name, int layer, const Matrix& value) const {
    if (probe_) probe_(name, layer, value);
  }

  const ModelConfig config_;
  const DecoderWeights weights_;
  const RopeFrequencies rope_;
  Backend& backend_;
  Probe probe_;

  std::unique_ptr<Matrix> hidden_;     // [tokens, hidden_size]: the residual stream
  std::unique_ptr<Matrix> normed_;     // [tokens, hidden_size]
  std::unique_ptr<Matrix> q_;          // [tokens, heads * head_dim]
  std::unique_ptr<Matrix> k_;          // [tokens, kv_heads * head_dim]
  std::unique_ptr<Matrix> v_;          // [tokens, kv_heads * head_dim]
  std::unique_ptr<Matrix> attention_;  // [tokens, heads * head_dim]
  std::unique_ptr<Matrix> gate_;       // [tokens, intermediate_size]
  std::unique_ptr<Matrix> up_;         // [tokens, intermediate_size]
  std::unique_ptr<Matrix> delta_;      // [tokens, hidden_size]: what a block adds to the residual stream
  std::unique_ptr<Matrix> selected_;   // [logit rows, hidden_size]
  std::unique_ptr<Matrix> logits_;     // [logit rows, vocab]

  Batch batch_;
  std::vector<TokenId> tokens_;          // [tokens]
  std::vector<float> rope_cos_;          // [tokens, head_dim / 2]
  std::vector<float> rope_sin_;          // [tokens, head_dim / 2]
  std::vector<SequenceRows> sequences_;  // [sequences]
  std::vector<int32_t> wanted_rows_;     // rows whose logits are wanted
};

}  // namespace qwench
