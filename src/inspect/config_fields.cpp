#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "inspect/model_card.h"

namespace qwench {
namespace {

using Origin = ConfigField::Origin;

/// Where a value may be written: names in config.json (also inside rope_parameters and rope_scaling), and the
/// key of a GGUF file after the architecture's prefix.
struct Source {
  std::string_view name;
  std::vector<const char*> json;
  std::string_view gguf;
  Origin otherwise = Origin::assumed;  // where it is written nowhere
};

const std::array kRopeObjects{"rope_parameters", "rope_scaling"};

std::optional<std::string> written_in_json(const Json& config, const std::vector<const char*>& names) {
  const auto holds = [](const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && !found->is_null();
  };
  for (const char* key : names) {
    if (holds(config, key)) return key;
    for (const char* object : kRopeObjects) {
      if (holds(config, object) && config.at(object).is_object() && holds(config.at(object), key))
        return fmt::format("{}.{}", object, key);
    }
  }
  return std::nullopt;
}

std::optional<std::string> written_in_gguf(const GgufFile& gguf, std::string_view key) {
  const auto architecture = gguf.string("general.architecture");
  if (key.empty() || !architecture) return std::nullopt;
  const std::string full =
      key.starts_with("tokenizer.") ? std::string(key) : fmt::format("{}.{}", *architecture, key);
  if (gguf.find(full) == nullptr) return std::nullopt;
  return full;
}

class Fields {
 public:
  explicit Fields(const Listing& listing) : listing_(listing) {}

  void add(const Source& source, Json value) {
    std::optional<std::string> written;
    if (listing_.gguf() != nullptr) {
      written = written_in_gguf(*listing_.gguf(), source.gguf);
    } else if (listing_.config().is_object()) {
      written = written_in_json(listing_.config(), source.json);
    }
    fields_.push_back({std::string(source.name), std::move(value), written ? Origin::file : source.otherwise,
                       written.value_or("")});
  }
  std::vector<ConfigField> take() { return std::move(fields_); }

 private:
  const Listing& listing_;
  std::vector<ConfigField> fields_;
};

void add_rope(const RopeConfig& rope, Fields& fields) {
  using Type = RopeConfig::Type;
  fields.add({"rope_theta", {"rope_theta"}, "rope.freq_base"}, rope.theta);
  fields.add({"rope_type", {"rope_type", "type"}, "rope.scaling.type"}, name(rope.type));
  if (rope.type == Type::standard) return;
  fields.add({"factor", {"factor"}, "rope.scaling.factor"}, rope.factor);
  if (rope.type == Type::linear) return;
  fields.add({"original_max_position_embeddings",
              {"original_max_position_embeddings"},
              "rope.scaling.original_context_length",
              Origin::derived},
             rope.original_max_position);
  if (rope.type == Type::yarn) {
    fields.add({"beta_fast", {"beta_fast"}, "rope.scaling.yarn_beta_fast"}, rope.beta_fast);
    fields.add({"beta_slow", {"beta_slow"}, "rope.scaling.yarn_beta_slow"}, rope.beta_slow);
    fields.add({"truncate", {"truncate"}, ""}, rope.truncate);
    if (rope.attention_factor) {
      fields.add({"attention_factor", {"attention_factor"}, "rope.scaling.attn_factor"},
                 *rope.attention_factor);
    }
  }
  if (rope.type == Type::llama3) {
    fields.add({"low_freq_factor", {"low_freq_factor"}, ""}, rope.low_freq_factor);
    fields.add({"high_freq_factor", {"high_freq_factor"}, ""}, rope.high_freq_factor);
  }
}

/// "all layers", "none", or which layers see how far.
Json windows(const ModelConfig& config) {
  Json list = Json::array();
  for (const int window : config.sliding_window) list.push_back(window == 0 ? Json(nullptr) : Json(window));
  const bool same = std::all_of(list.begin(), list.end(), [&](const Json& w) { return w == list.front(); });
  return same && !list.empty() ? list.front() : list;
}

std::vector<ConfigField> as_written(const Listing& listing) {
  std::vector<ConfigField> fields;
  if (!listing.config().is_object()) return fields;
  for (const auto& [name, value] : listing.config().items())
    fields.push_back({to_valid_utf8(name), value, Origin::file, to_valid_utf8(name)});
  return fields;
}

}  // namespace

std::string_view name(ConfigField::Origin origin) noexcept {
  switch (origin) {
    case Origin::file:
      return "file";
    case Origin::assumed:
      return "default";
    case Origin::derived:
      return "derived";
  }
  return "";
}

std::vector<ConfigField> config_fields(const Listing& listing, const ModelCard& card) {
  if (!card.config) return as_written(listing);
  const ModelConfig& config = *card.config;
  Fields fields(listing);
  fields.add({"model_type", {"model_type"}, "block_count"}, config.family);
  fields.add({"hidden_size", {"hidden_size"}, "embedding_length"}, config.hidden_size);
  fields.add({"intermediate_size", {"intermediate_size"}, "feed_forward_length"}, config.intermediate_size);
  fields.add({"num_hidden_layers", {"num_hidden_layers"}, "block_count"}, config.num_layers);
  fields.add({"num_attention_heads", {"num_attention_heads"}, "attention.head_count"}, config.num_heads);
  fields.add({"num_key_value_heads", {"num_key_value_heads"}, "attention.head_count_kv"},
             config.num_kv_heads);
  const bool divided = config.head_dim * config.num_heads == config.hidden_size;
  fields.add({"head_dim", {"head_dim"}, "attention.key_length", divided ? Origin::derived : Origin::assumed},
             config.head_dim);
  fields.add({"vocab_size", {"vocab_size"}, "vocab_size", Origin::derived}, config.vocab_size);
  fields.add({"max_position_embeddings", {"max_position_embeddings"}, "context_length"}, config.max_position);
  fields.add({"rms_norm_eps", {"rms_norm_eps"}, "attention.layer_norm_rms_epsilon"},
             Json::parse(fmt::format("{}", config.rms_norm_eps)));
  add_rope(config.rope, fields);
  fields.add({"sliding_window", {"layer_types", "sliding_window"}, "attention.sliding_window"},
             windows(config));
  const Origin silent = listing.gguf() != nullptr ? Origin::derived : Origin::assumed;
  fields.add({"tie_word_embeddings", {"tie_word_embeddings"}, "", silent}, config.tie_word_embeddings);
  fields.add({"attention_bias", {"attention_bias"}, "", silent}, config.attention_bias);
  fields.add({"qk_norm", {}, "", Origin::derived}, config.qk_norm);
  fields.add({"hidden_act", {"hidden_act"}, "", Origin::assumed}, "silu");
  fields.add({"dtype", {"dtype", "torch_dtype"}, "", Origin::derived},
             config.stored_dtype ? Json(name(*config.stored_dtype)) : Json(nullptr));
  fields.add({"eos_token_id", {"eos_token_id"}, "tokenizer.ggml.eos_token_id"}, config.eos_token_ids);
  fields.add({"bos_token_id", {"bos_token_id"}, "tokenizer.ggml.bos_token_id"},
             config.bos_token_id ? Json(*config.bos_token_id) : Json(nullptr));
  return fields.take();
}

std::vector<std::string> unused_fields(const Listing& listing, const ModelCard& card) {
  std::vector<std::string> unused;
  if (!card.config || !listing.config().is_object()) return unused;
  static constexpr std::array kRead{
      "architectures",     "rope_scaling", "rope_parameters", "use_sliding_window", "sliding_window",
      "max_window_layers", "layer_types",  "mlp_bias",        "torch_dtype",        "dtype"};
  std::vector<std::string> used(kRead.begin(), kRead.end());
  for (const ConfigField& field : config_fields(listing, card)) used.push_back(field.source);
  for (const auto& [key, value] : listing.config().items()) {
    if (std::find(used.begin(), used.end(), key) == used.end()) unused.push_back(to_valid_utf8(key));
  }
  return unused;
}

}  // namespace qwench
