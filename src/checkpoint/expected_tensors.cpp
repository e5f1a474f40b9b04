#include "checkpoint/expected_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <unordered_set>

#include "checkpoint/ggml_types.h"
#include "checkpoint/printable.h"
#include "checkpoint/tensor_names.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Kind = ExpectedTensor::Kind;

/// Present in some files and without effect on the result.
bool is_redundant(std::string_view name, const Checkpoint& checkpoint) {
  if (name == "lm_head.weight") return checkpoint.config().tie_word_embeddings;
  if (name == "rope_freqs.weight") return checkpoint.gguf() != nullptr;  // it went into the config
  // Buffers that old versions of transformers saved beside the weights.
  return name.starts_with("model.") &&
         (name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".self_attn.bias") ||
          name.ends_with(".self_attn.masked_bias") || name.ends_with(".rotary_emb.cos_cached") ||
          name.ends_with(".rotary_emb.sin_cached"));
}

std::string label(const std::string& name, const Checkpoint& checkpoint) {
  const std::string other = checkpoint.gguf() != nullptr ? gguf_name(name) : std::string();
  return other.empty() ? fmt::format("tensor {}", printable(std::string_view(name)))
                       : fmt::format("tensor {} ({})", printable(std::string_view(other)), name);
}

class Check {
 public:
  explicit Check(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), expected_(expected_tensors(checkpoint.config())) {}

  /// Hands every problem to `found`.
  void run(const std::function<void(const Error&)>& found) {
    // Biases may be absent, but then everywhere: q, k and v go together, and so do the layers.
    for (const ExpectedTensor& tensor : expected_) {
      if (tensor.optional && checkpoint_.find(tensor.name) != nullptr)
        (is_output_bias(tensor.name) ? output_bias_ : input_bias_) = true;
    }
    for (const ExpectedTensor& tensor : expected_) {
      try {
        check(tensor);
      } catch (const Error& problem) {
        found(problem);
      }
    }
    check_unused(found);
  }

 private:
  static bool is_output_bias(std::string_view name) { return name.ends_with(".o_proj.bias"); }

  [[noreturn]] void fail(ErrorKind kind, const std::string& message) const {
    throw Error(kind, fmt::format("{}: {}", checkpoint_.path().string(), message));
  }

  void check(const ExpectedTensor& expected) const {
    const TensorView* tensor = checkpoint_.find(expected.name);
    if (tensor == nullptr) {
      if (const UnreadableTensor* other = checkpoint_.find_unreadable(expected.name)) {
        fail(ErrorKind::unsupported,
             fmt::format("{} is of type {}; {} can be read", label(expected.name, checkpoint_),
                         other->type_name,
                         checkpoint_.gguf() != nullptr ? readable_ggml_types() : "F32, F16 and BF16"));
      }
      if (expected.optional && !(is_output_bias(expected.name) ? output_bias_ : input_bias_)) return;
      const bool head = expected.name == "lm_head.weight";
      fail(ErrorKind::malformed,
           fmt::format("{} is missing{}", label(expected.name, checkpoint_),
                       head ? ", and the config does not say `tie_word_embeddings`: true" : ""));
    }
    if (tensor->shape != expected.shape) {
      fail(ErrorKind::malformed,
           fmt::format("{} has the shape [{}], but the config asks for [{}]",
                       label(expected.name, checkpoint_), fmt::join(tensor->shape, ", "),
                       fmt::join(expected.shape, ", ")));
    }
    if (expected.kind == Kind::vector && is_quantized(tensor->dtype)) {
      fail(ErrorKind::unsupported, fmt::format("{} is of type {}; norms and biases must be F32, F16 or BF16",
                                               label(expected.name, checkpoint_), name(tensor->dtype)));
    }
  }

  void check_unused(const std::function<void(const Error&)>& found) const {
    std::unordered_set<std::string_view> known;
    for (const ExpectedTensor& tensor : expected_) known.insert(tensor.name);
    const auto check_name = [&](const std::string& name) {
      if (known.contains(name) || is_redundant(name, checkpoint_)) return;
      found(Error(
          ErrorKind::malformed,
          fmt::format("{}: {} is in the file, but a {} model with this config has no such tensor",
                      checkpoint_.path().string(), label(name, checkpoint_), checkpoint_.config().family)));
    };
    for (const TensorView& tensor : checkpoint_.tensors()) check_name(tensor.name);
    for (const UnreadableTensor& tensor : checkpoint_.unreadable_tensors()) check_name(tensor.name);
  }

  const Checkpoint& checkpoint_;
  const std::vector<ExpectedTensor> expected_;
  bool input_bias_ = false;   // some q, k or v has a bias
  bool output_bias_ = false;  // some o has one
};

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t inter = config.intermediate_size;
  const int64_t q = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv = int64_t{config.num_kv_heads} * config.head_dim;
  std::vector<ExpectedTensor> list;
  const auto matrix = [&](std::string name, int64_t out, int64_t in) {
    list.push_back({std::move(name), {out, in}, Kind::matrix, false});
  };
  const auto vector = [&](std::string name, int64_t size, bool optional = false) {
    list.push_back({std::move(name), {size}, Kind::vector, optional});
  };
  matrix("model.embed_tokens.weight", config.vocab_size, hidden);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    vector(layer + "input_layernorm.weight", hidden);
    matrix(layer + "self_attn.q_proj.weight", q, hidden);
    vector(layer + "self_attn.q_proj.bias", q, !config.attention_bias);
    matrix(layer + "self_attn.k_proj.weight", kv, hidden);
    vector(layer + "self_attn.k_proj.bias", kv, !config.attention_bias);
    matrix(layer + "self_attn.v_proj.weight", kv, hidden);
    vector(layer + "self_attn.v_proj.bias", kv, !config.attention_bias);
    if (config.qk_norm) {
      vector(layer + "self_attn.q_norm.weight", config.head_dim);
      vector(layer + "self_attn.k_norm.weight", config.head_dim);
    }
    matrix(layer + "self_attn.o_proj.weight", hidden, q);
    vector(layer + "self_attn.o_proj.bias", hidden, !config.attention_bias);
    vector(layer + "post_attention_layernorm.weight", hidden);
    matrix(layer + "mlp.gate_proj.weight", inter, hidden);
    matrix(layer + "mlp.up_proj.weight", inter, hidden);
    matrix(layer + "mlp.down_proj.weight", hidden, inter);
  }
  vector("model.norm.weight", hidden);
  if (!config.tie_word_embeddings) matrix("lm_head.weight", config.vocab_size, hidden);
  return list;
}

void check_tensors(const Checkpoint& checkpoint) {
  Check(checkpoint).run([](const Error& problem) { throw Error(problem); });
}

std::vector<std::string> tensor_problems(const Checkpoint& checkpoint) {
  std::vector<std::string> problems;
  Check(checkpoint).run([&](const Error& problem) { problems.emplace_back(problem.what()); });
  return problems;
}

}  // namespace qwench
