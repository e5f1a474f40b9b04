#include "checkpoint/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "checkpoint/json_fields.h"
#include "checkpoint/model_limits.h"
#include "checkpoint/printable.h"
#include "checkpoint/rope_config.h"
#include "core/log.h"
#include "qwench/error.h"

namespace qwench {
namespace {

/// What transformers' configuration class of a family assumes where a config.json is silent.
struct Family {
  std::string_view name;
  std::array<std::string_view, 2> architectures;
  int64_t max_position;
  std::optional<int> head_dim;  // empty: hidden_size / num_attention_heads
  bool qk_norm;
  bool sliding_window;
  bool attention_bias;  // the config has a say in it; Qwen2's q, k and v have biases whatever it says
};
constexpr std::array<Family, 3> kFamilies{{
    {"qwen2", {"Qwen2ForCausalLM", "Qwen2Model"}, 32768, std::nullopt, false, true, false},
    {"qwen3", {"Qwen3ForCausalLM", "Qwen3Model"}, 32768, 128, true, true, true},
    {"llama", {"LlamaForCausalLM", "LlamaModel"}, 2048, std::nullopt, false, false, true},
}};
constexpr int64_t kDefaultSlidingWindow = 4096;
constexpr int64_t kDefaultMaxWindowLayers = 28;

[[noreturn]] void unsupported(const JsonFields& fields, const std::string& message) {
  throw Error(ErrorKind::unsupported, fmt::format("{}: {}", fields.what(), message));
}

const Family& read_family(const JsonFields& fields) {
  const auto type = fields.string("model_type");
  if (!type) throw Error(ErrorKind::malformed, fmt::format("{}: `model_type` is missing", fields.what()));
  if (type->ends_with("_moe") || type->ends_with("_next")) {
    unsupported(fields, fmt::format("`model_type` is {}: mixture-of-experts models are not supported yet",
                                    printable(std::string_view(*type))));
  }
  if (fields.has("text_config") || fields.has("vision_config") || fields.has("audio_config")) {
    unsupported(fields, fmt::format("{} is a model with images or sound; only text models are supported",
                                    printable(std::string_view(*type))));
  }
  const auto* family =
      std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& f) { return f.name == *type; });
  if (family == kFamilies.end()) {
    unsupported(fields, fmt::format("`model_type` is {}; qwen2, qwen3 and llama are supported",
                                    printable(std::string_view(*type))));
  }
  if (const auto architectures = fields.strings("architectures"); architectures && !architectures->empty()) {
    const bool known = std::any_of(architectures->begin(), architectures->end(), [&](const std::string& a) {
      return a == family->architectures[0] || a == family->architectures[1];
    });
    if (!known) {
      unsupported(fields, fmt::format("`architectures` names {}; {} models are supported as {}",
                                      printable(std::string_view(architectures->front())), family->name,
                                      family->architectures[0]));
    }
  }
  return *family;
}

/// Fields that change the result when set, and that no model of these families needs.
void refuse_unsupported(const JsonFields& fields) {
  if (const Json* quantization = fields.find("quantization_config")) {
    std::string method = "quantized";
    if (quantization->is_object() && quantization->contains("quant_method") &&
        (*quantization)["quant_method"].is_string()) {
      method = printable(std::string_view((*quantization)["quant_method"].get_ref<const std::string&>()));
    }
    unsupported(
        fields,
        fmt::format("`quantization_config` says the weights are {}; only F32, F16 and BF16 safetensors can "
                    "be read: take the original checkpoint or a GGUF file",
                    method));
  }
  if (const auto act = fields.string("hidden_act"); act && *act != "silu" && *act != "swish") {
    unsupported(fields,
                fmt::format("`hidden_act` is {}; only silu is supported", printable(std::string_view(*act))));
  }
  if (fields.boolean("mlp_bias").value_or(false)) {
    unsupported(fields, "`mlp_bias` is true; biases in the MLP are not supported");
  }
  for (const char* experts : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    if (fields.integer(experts, 0, INT32_MAX).value_or(0) > 1) {
      unsupported(fields,
                  fmt::format("`{}` is set: mixture-of-experts models are not supported yet", experts));
    }
  }
  if (fields.boolean("is_encoder_decoder").value_or(false)) {
    unsupported(fields, "`is_encoder_decoder` is true; only decoders are supported");
  }
}

std::vector<int> windows_by_layer_types(const JsonFields& fields, const Family& family, int layers) {
  const auto types = fields.strings("layer_types");
  const bool off = fields.boolean("use_sliding_window") == std::optional(false);
  const int64_t window = fields.integer("sliding_window", 0, limits::kPositions).value_or(0);
  if (types->size() != static_cast<size_t>(layers)) {
    throw Error(ErrorKind::malformed, fmt::format("{}: `layer_types` has {} entries for {} layers",
                                                  fields.what(), types->size(), layers));
  }
  std::vector<int> windows;
  for (const std::string& type : *types) {
    if (type == "full_attention") {
      windows.push_back(0);
    } else if (type == "sliding_attention" && family.sliding_window) {
      if (off || window < 1) {
        throw Error(ErrorKind::malformed,
                    fmt::format("{}: `layer_types` names sliding_attention, but {}", fields.what(),
                                off ? "`use_sliding_window` is false" : "`sliding_window` gives no window"));
      }
      windows.push_back(static_cast<int>(window));
    } else {
      unsupported(fields, fmt::format("`layer_types` names {}; {} supported for {}",
                                      printable(std::string_view(type)),
                                      family.sliding_window ? "full_attention and sliding_attention are"
                                                            : "full_attention is",
                                      family.name));
    }
  }
  return windows;
}

std::vector<int> read_windows(const JsonFields& fields, const Family& family, int layers) {
  const bool wanted = fields.boolean("use_sliding_window").value_or(false);
  const auto given = fields.integer("sliding_window", 0, limits::kPositions);
  const int64_t first =
      fields.integer("max_window_layers", 0, limits::kPositions).value_or(kDefaultMaxWindowLayers);
  if (fields.has("layer_types")) return windows_by_layer_types(fields, family, layers);
  std::vector<int> windows(static_cast<size_t>(layers), 0);
  if (!wanted) return windows;
  if (!family.sliding_window) {
    unsupported(fields,
                fmt::format("`use_sliding_window` is true, which {} models do not have", family.name));
  }
  // A window that is written as null is off; one that is not written is transformers' default.
  const bool written_null = fields.is_null("sliding_window");
  const int64_t window = written_null ? 0 : given.value_or(kDefaultSlidingWindow);
  if (window < 1) {
    throw Error(
        ErrorKind::malformed,
        fmt::format("{}: `use_sliding_window` is true, but `sliding_window` gives no window", fields.what()));
  }
  for (int64_t i = first; i < layers; ++i) windows[static_cast<size_t>(i)] = static_cast<int>(window);
  return windows;
}

int read_head_dim(const JsonFields& fields, const Family& family, const ModelConfig& config) {
  auto head_dim = fields.integer("head_dim", 1, limits::kHeadDim);
  if (!head_dim && family.head_dim) head_dim = family.head_dim;
  if (!head_dim) {
    if (config.hidden_size % config.num_heads != 0) {
      throw Error(
          ErrorKind::malformed,
          fmt::format(
              "{}: `hidden_size` is {}, no multiple of `num_attention_heads`, which is {}, and `head_dim` is "
              "missing",
              fields.what(), config.hidden_size, config.num_heads));
    }
    head_dim = config.hidden_size / config.num_heads;
    if (*head_dim > limits::kHeadDim) {
      throw Error(ErrorKind::malformed,
                  fmt::format("{}: `hidden_size` / `num_attention_heads` gives heads of {} dimensions, "
                              "more than {}",
                              fields.what(), *head_dim, limits::kHeadDim));
    }
  }
  return static_cast<int>(*head_dim);
}

std::optional<DType> read_stored_dtype(const JsonFields& fields) {
  std::optional<DType> result;
  for (const char* key : {"torch_dtype", "dtype"}) {
    const auto text = fields.string(key);
    if (!text || *text == "auto") continue;
    const size_t dot = text->rfind('.');  // "torch.bfloat16"
    const auto dtype = dtype_from_name(dot == std::string::npos ? *text : text->substr(dot + 1));
    if (!dtype || is_quantized(*dtype)) {
      unsupported(fields, fmt::format("`{}` is {}; float32, float16 and bfloat16 are supported", key,
                                      printable(std::string_view(*text))));
    }
    result = dtype;
  }
  return result;
}

}  // namespace

ModelConfig ModelConfig::from_json(const Json& json, const std::string& what) {
  const JsonFields fields(json, what);
  const Family& family = read_family(fields);
  refuse_unsupported(fields);
  const auto count = [&](const char* key, int64_t high) {
    return static_cast<int>(fields.required_integer(key, 1, high));
  };
  ModelConfig config;
  config.family = family.name;
  config.qk_norm = family.qk_norm;
  config.hidden_size = count("hidden_size", limits::kWidth);
  config.intermediate_size = count("intermediate_size", limits::kWidth);
  config.num_layers = count("num_hidden_layers", limits::kLayers);
  config.num_heads = count("num_attention_heads", limits::kHeads);
  config.num_kv_heads =
      static_cast<int>(fields.integer("num_key_value_heads", 1, limits::kHeads).value_or(config.num_heads));
  config.head_dim = read_head_dim(fields, family, config);
  config.vocab_size = count("vocab_size", limits::kVocabulary);
  const int64_t max_position =
      fields.integer("max_position_embeddings", 1, limits::kPositions).value_or(family.max_position);
  config.rope = read_rope_config(fields, max_position);
  config.max_position = stretched_positions(config.rope, max_position);
  config.rms_norm_eps = static_cast<float>(fields.number("rms_norm_eps").value_or(1e-6));
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings").value_or(false);
  config.attention_bias = fields.boolean("attention_bias").value_or(false) && family.attention_bias;
  config.sliding_window = read_windows(fields, family, config.num_layers);
  config.stored_dtype = read_stored_dtype(fields);
  config.eos_token_ids = fields.token_ids("eos_token_id");
  config.bos_token_id = fields.token_id("bos_token_id");
  check_model_config(config, what);
  return config;
}

void check_model_config(const ModelConfig& config, const std::string& what) {
  const auto fail = [&](const std::string& message) {
    throw Error(ErrorKind::malformed, fmt::format("{}: {}", what, message));
  };
  if (config.num_heads % config.num_kv_heads != 0) {
    fail(fmt::format("{} attention heads are no multiple of {} key/value heads", config.num_heads,
                     config.num_kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    fail(fmt::format("heads have {} dimensions, which RoPE cannot rotate in pairs: expected an even number",
                     config.head_dim));
  }
  if (config.rope.type == RopeConfig::Type::dynamic && config.head_dim < 4) {
    fail(fmt::format("dynamic RoPE scaling needs heads of at least 4 dimensions, found {}", config.head_dim));
  }
  if (!(std::isfinite(config.rms_norm_eps) && config.rms_norm_eps > 0.0f && config.rms_norm_eps < 1.0f)) {
    fail(fmt::format("the epsilon of the RMS norm is {}, expected a number between 0 and 1",
                     config.rms_norm_eps));
  }
}

}  // namespace qwench
