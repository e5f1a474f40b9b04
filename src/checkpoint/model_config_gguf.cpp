#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "checkpoint/model_limits.h"
#include "checkpoint/printable.h"
#include "checkpoint/rope_config.h"
#include "qwench/error.h"

namespace qwench {
namespace {

class ModelKeys {
 public:
  ModelKeys(const GgufFile& file, const std::string& architecture)
      : file_(file), prefix_(architecture + ".") {}

  std::string key(const char* end) const { return prefix_ + end; }

  std::optional<int> integer(const char* end, int64_t high) const {
    const auto value = file_.integer(key(end));
    if (value && (*value < 1 || *value > high)) {
      fail(fmt::format("{} is {}, expected a whole number from 1 to {}", key(end), *value, high));
    }
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }

  int required(const char* end, int64_t high) const {
    const auto value = integer(end, high);
    if (!value) fail(fmt::format("{} is missing", key(end)));
    return *value;
  }

  /// A count that some files give once for all layers and some once a layer.
  std::optional<int> same_for_all_layers(const char* end, int64_t high, int layers) const {
    const GgufValue* value = file_.find(key(end));
    if (value == nullptr || !value->is_array) return integer(end, high);
    const auto list = *file_.integers(key(end));
    if (list.size() != static_cast<size_t>(layers)) {
      fail(fmt::format("{} has {} values for {} layers", key(end), list.size(), layers));
    }
    if (std::any_of(list.begin(), list.end(), [&](int64_t v) { return v != list.front(); })) {
      fail(fmt::format("{} differs by layer, which is not supported", key(end)), ErrorKind::unsupported);
    }
    if (list.front() < 1 || list.front() > high) {
      fail(fmt::format("{} is {}, expected a whole number from 1 to {}", key(end), list.front(), high));
    }
    return static_cast<int>(list.front());
  }

  [[noreturn]] void fail(const std::string& message, ErrorKind kind = ErrorKind::malformed) const {
    throw Error(kind, fmt::format("{}: {}", file_.what(), message));
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

std::string read_architecture(const GgufFile& file) {
  const auto fail = [&](ErrorKind kind, const std::string& message) {
    throw Error(kind, fmt::format("{}: {}", file.what(), message));
  };
  const auto found = file.string("general.architecture");
  if (!found) fail(ErrorKind::malformed, "general.architecture is missing");
  const std::string architecture(*found);
  if (architecture.find("moe") != std::string::npos) {
    fail(ErrorKind::unsupported,
         fmt::format("general.architecture is {}: mixture-of-experts models are not supported yet",
                     printable(*found)));
  }
  if (architecture != "qwen2" && architecture != "qwen3" && architecture != "llama") {
    fail(ErrorKind::unsupported,
         fmt::format("general.architecture is {}; qwen2, qwen3 and llama are supported", printable(*found)));
  }
  return architecture;
}

/// Keys of other models, which change the result when they are not neutral.
void refuse_unsupported(const GgufFile& file, const ModelKeys& keys, int64_t max_position) {
  if (file.integer(keys.key("expert_count")).value_or(0) > 0) {
    keys.fail(
        fmt::format("{} is set: mixture-of-experts models are not supported yet", keys.key("expert_count")),
        ErrorKind::unsupported);
  }
  struct Neutral {
    const char* key;
    double value;
  };
  for (const Neutral& n : {Neutral{"logit_scale", 1}, Neutral{"residual_scale", 1},
                           Neutral{"embedding_scale", 1}, Neutral{"attention.clamp_kqv", 0},
                           Neutral{"attention.max_alibi_bias", 0}, Neutral{"attention.scale", 0},
                           Neutral{"attn_logit_softcapping", 0}, Neutral{"final_logit_softcapping", 0}}) {
    const auto value = file.number(keys.key(n.key));
    if (value && *value != 0.0 && *value != n.value) {
      keys.fail(fmt::format("{} is {}, which is not supported", keys.key(n.key), *value),
                ErrorKind::unsupported);
    }
  }
  if (!file.boolean(keys.key("attention.causal")).value_or(true)) {
    keys.fail(fmt::format("{} is false; only causal models are supported", keys.key("attention.causal")),
              ErrorKind::unsupported);
  }
  if (file.boolean(keys.key("use_parallel_residual")).value_or(false)) {
    keys.fail(fmt::format("{} is true, which is not supported", keys.key("use_parallel_residual")),
              ErrorKind::unsupported);
  }
  // The format does not say which layers of a Qwen2 have the window.
  const int64_t window = file.integer(keys.key("attention.sliding_window")).value_or(0);
  if (window > 0 && window < max_position) {
    keys.fail(
        fmt::format("{} is {}, less than the context of {}: sliding windows in GGUF files are not supported",
                    keys.key("attention.sliding_window"), window, max_position),
        ErrorKind::unsupported);
  }
}

int read_vocab_size(const GgufFile& file, const ModelKeys& keys) {
  auto size = keys.integer("vocab_size", limits::kVocabulary);
  const GgufTensor* embedding = file.tensor("token_embd.weight");
  if (!size && embedding != nullptr && embedding->shape.size() == 2 && embedding->shape[0] >= 1 &&
      embedding->shape[0] <= limits::kVocabulary) {
    size = static_cast<int>(embedding->shape[0]);
  }
  const GgufValue* tokens = file.find("tokenizer.ggml.tokens");
  const bool listed = tokens != nullptr && tokens->is_array && tokens->type == GgufType::string;
  if (!size && listed && tokens->count >= 1 && tokens->count <= limits::kVocabulary)
    size = static_cast<int>(tokens->count);
  if (!size)
    keys.fail(fmt::format("{} is missing, and no token_embd.weight tells the size of the vocabulary",
                          keys.key("vocab_size")));
  if (listed && tokens->count > static_cast<uint64_t>(*size)) {
    keys.fail(fmt::format("tokenizer.ggml.tokens has {} tokens, more than the vocabulary of {}",
                          tokens->count, *size));
  }
  return *size;
}

std::optional<TokenId> token_id(const GgufFile& file, const char* key) {
  const auto id = file.integer(key);
  if (!id || *id == -1 || *id == UINT32_MAX) return std::nullopt;  // both are written for "none"
  if (*id < 0 || *id > INT32_MAX) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: {} is {}, which is no token id", file.what(), key, *id));
  }
  return static_cast<TokenId>(*id);
}

int read_head_dim(const ModelKeys& keys, const ModelConfig& config) {
  auto key_length = keys.integer("attention.key_length", limits::kHeadDim);
  if (!key_length) {
    if (config.hidden_size % config.num_heads != 0) {
      keys.fail(fmt::format("{} is {}, no multiple of the {} attention heads, and {} is missing",
                            keys.key("embedding_length"), config.hidden_size, config.num_heads,
                            keys.key("attention.key_length")));
    }
    key_length = config.hidden_size / config.num_heads;
    if (*key_length > limits::kHeadDim)
      keys.fail(fmt::format("heads have {} dimensions, more than {}", *key_length, limits::kHeadDim));
  }
  const auto value_length = keys.integer("attention.value_length", limits::kHeadDim);
  if (value_length && *value_length != *key_length) {
    keys.fail(fmt::format("{} is {}, but keys have {} dimensions; different lengths are not supported",
                          keys.key("attention.value_length"), *value_length, *key_length),
              ErrorKind::unsupported);
  }
  return *key_length;
}

}  // namespace

ModelConfig ModelConfig::from_gguf(const GgufFile& file) {
  const std::string architecture = read_architecture(file);
  const ModelKeys keys(file, architecture);
  ModelConfig config;
  config.family = architecture;
  config.qk_norm = architecture == "qwen3";
  config.interleaved_rope = architecture == "llama";
  config.num_layers = keys.required("block_count", limits::kLayers);
  config.hidden_size = keys.required("embedding_length", limits::kWidth);
  const auto per_layer = [&](const char* key, int64_t high) {
    return keys.same_for_all_layers(key, high, config.num_layers);
  };
  const auto required = [&](const char* key, int64_t high) {
    const auto value = per_layer(key, high);
    if (!value) keys.fail(fmt::format("{} is missing", keys.key(key)));
    return *value;
  };
  config.intermediate_size = required("feed_forward_length", limits::kWidth);
  config.num_heads = required("attention.head_count", limits::kHeads);
  config.num_kv_heads = per_layer("attention.head_count_kv", limits::kHeads).value_or(config.num_heads);
  config.head_dim = read_head_dim(keys, config);
  config.vocab_size = read_vocab_size(file, keys);
  const int64_t max_position = keys.required("context_length", limits::kPositions);
  refuse_unsupported(file, keys, max_position);
  const auto eps = file.number(keys.key("attention.layer_norm_rms_epsilon"));
  if (!eps) keys.fail(fmt::format("{} is missing", keys.key("attention.layer_norm_rms_epsilon")));
  config.rms_norm_eps = static_cast<float>(*eps);
  check_model_config(config, file.what());
  config.rope = read_rope_config(file, architecture, max_position, config.head_dim);
  config.max_position = stretched_positions(config.rope, max_position);
  config.tie_word_embeddings = file.tensor("output.weight") == nullptr;
  config.sliding_window.assign(static_cast<size_t>(config.num_layers), 0);
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const auto id = token_id(file, key);
    if (id && std::find(config.eos_token_ids.begin(), config.eos_token_ids.end(), *id) ==
                  config.eos_token_ids.end()) {
      config.eos_token_ids.push_back(*id);
    }
  }
  config.bos_token_id = token_id(file, "tokenizer.ggml.bos_token_id");
  return config;
}

}  // namespace qwench
