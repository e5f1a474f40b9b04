#include "model/decoder.h"

#include <array>
#include <utility>

namespace qwench {

Decoder::Decoder(const ModelConfig& config, DecoderWeights weights, Backend& backend, int max_tokens,
                 int max_logit_rows)
    : config_(config), weights_(std::move(weights)), rope_(config.rope, config.head_dim), backend_(backend) {
  const int q_width = config.num_heads * config.head_dim;
  const int kv_width = config.num_kv_heads * config.head_dim;
  hidden_ = backend.allocate(max_tokens, config.hidden_size);
  normed_ = backend.allocate(max_tokens, config.hidden_size);
  q_ = backend.allocate(max_tokens, q_width);
  k_ = backend.allocate(max_tokens, kv_width);
  v_ = backend.allocate(max_tokens, kv_width);
  attention_ = backend.allocate(max_tokens, q_width);
  gate_ = backend.allocate(max_tokens, config.intermediate_size);
  up_ = backend.allocate(max_tokens, config.intermediate_size);
  delta_ = backend.allocate(max_tokens, config.hidden_size);
  selected_ = backend.allocate(max_logit_rows, config.hidden_size);
  logits_ = backend.allocate(max_logit_rows, config.vocab_size);

  const auto rows = static_cast<size_t>(max_tokens);
  tokens_.reserve(rows);
  sequences_.reserve(rows);
  wanted_rows_.reserve(rows);
  rope_cos_.resize(rows * static_cast<size_t>(config.head_dim / 2));
  rope_sin_.resize(rope_cos_.size());
}

void Decoder::forward(std::span<const SequenceInput> sequences, KvCache& cache) {
  prepare_batch(sequences);
  backend_.begin(batch_);
  backend_.embed(*weights_.embed_tokens, *hidden_);
  for (int layer = 0; layer < config_.num_layers; ++layer) {
    probe("hidden", layer, *hidden_);
    attention_block(layer, cache);
    mlp_block(layer);
  }
  probe("hidden", config_.num_layers, *hidden_);
  backend_.rms_norm(*hidden_, *weights_.norm, config_.rms_norm_eps, *normed_);
  probe("norm", config_.num_layers, *normed_);
}

void Decoder::attention_block(int layer, KvCache& cache) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  backend_.rms_norm(*hidden_, *w.input_layernorm, config_.rms_norm_eps, *normed_);
  probe("attn_in", layer, *normed_);
  const std::array projections{w.q_proj.linear(), w.k_proj.linear(), w.v_proj.linear()};
  const std::array outs{q_.get(), k_.get(), v_.get()};
  backend_.linear(*normed_, projections, outs);

  const RopePairing pairing = config_.interleaved_rope ? RopePairing::interleaved : RopePairing::halves;
  backend_.rope(*q_, w.q_norm.get(), config_.rms_norm_eps, config_.head_dim, pairing);
  backend_.rope(*k_, w.k_norm.get(), config_.rms_norm_eps, config_.head_dim, pairing);
  probe("q", layer, *q_);
  probe("k", layer, *k_);
  probe("v", layer, *v_);

  backend_.store_kv(cache, layer, *k_, *v_);
  backend_.attention(cache, layer, *q_, config_.sliding_window[static_cast<size_t>(layer)], *attention_);
  backend_.linear(*attention_, std::array{w.o_proj.linear()}, std::array{delta_.get()});
  probe("attn_out", layer, *delta_);
  backend_.add(*hidden_, *delta_);
}

void Decoder::mlp_block(int layer) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  backend_.rms_norm(*hidden_, *w.post_attention_layernorm, config_.rms_norm_eps, *normed_);
  const std::array projections{w.gate_proj.linear(), w.up_proj.linear()};
  const std::array outs{gate_.get(), up_.get()};
  backend_.linear(*normed_, projections, outs);
  backend_.silu_mul(*gate_, *up_);
  backend_.linear(*gate_, std::array{w.down_proj.linear()}, std::array{delta_.get()});
  probe("mlp_out", layer, *delta_);
  backend_.add(*hidden_, *delta_);
}

const Matrix& Decoder::logits(int first, int count) {
  batch_.logit_rows = std::span(wanted_rows_).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  backend_.begin_logits(batch_);
  selected_->rows = logits_->rows = count;
  backend_.gather_rows(*normed_, *selected_);
  backend_.linear(*selected_, std::array{Linear{&weights_.head(), nullptr}}, std::array{logits_.get()});
  return *logits_;
}

void Decoder::prepare_batch(std::span<const SequenceInput> sequences) {
  tokens_.clear();
  sequences_.clear();
  wanted_rows_.clear();
  const auto half = static_cast<size_t>(config_.head_dim / 2);
  for (const SequenceInput& sequence : sequences) {
    const int first_row = static_cast<int>(tokens_.size());
    const int rows = static_cast<int>(sequence.tokens.size());
    for (int i = 0; i < rows; ++i) {
      const size_t at = static_cast<size_t>(first_row + i) * half;
      rope_.fill(sequence.start + i, sequence.rope_length, std::span(rope_cos_).subspan(at, half),
                 std::span(rope_sin_).subspan(at, half));
      const bool last = i == rows - 1;
      if (sequence.all_logits || (last && sequence.last_logits)) wanted_rows_.push_back(first_row + i);
    }
    tokens_.insert(tokens_.end(), sequence.tokens.begin(), sequence.tokens.end());
    sequences_.push_back({first_row, rows, sequence.start + rows, sequence.block_table});
  }
  const size_t used = tokens_.size() * half;
  batch_ = {tokens_, std::span(rope_cos_).first(used), std::span(rope_sin_).first(used), sequences_,
            wanted_rows_};
  set_rows(static_cast<int>(tokens_.size()));
}

void Decoder::set_rows(int rows) {
  for (Matrix* matrix : {hidden_.get(), normed_.get(), q_.get(), k_.get(), v_.get(), attention_.get(),
                         gate_.get(), up_.get(), delta_.get()}) {
    matrix->rows = rows;
  }
}

}  // namespace qwench
