#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/model_config.h"
#include "core/json.h"
#include "inspect/listing.h"

namespace qwench {

/// What a model is, from its headers alone.
struct ModelCard {
  std::string name;
  std::string family;        ///< model_type of config.json, or the architecture of a GGUF file
  std::string architecture;  ///< "Qwen3ForCausalLM"; empty where the files do not say
  std::string format;
  int64_t parameters = 0;  ///< a tied head counts once, buffers that are no weights not at all
  int64_t embedding_parameters = 0;
  int64_t head_parameters = 0;    ///< 0 when tied
  int64_t layer_parameters = 0;   ///< of the largest layer
  int64_t layers_parameters = 0;  ///< of all layers
  int64_t active_parameters = 0;  ///< that work on one token: fewer than `parameters` in a mixture of experts
  int layers = 0;                 ///< found among the tensors
  bool tied = false;              ///< the head is the embedding
  std::map<std::string, uint64_t> bytes_by_type;  ///< "BF16" -> bytes
  std::optional<ModelConfig> config;              ///< where this engine knows the family
  std::string not_run;                            ///< else the sentence that says why not
};

ModelCard model_card(const Listing& listing);
Json to_json(const ModelCard& card, const Listing& listing);

/// One value of the config as it holds, and where it comes from.
struct ConfigField {
  enum class Origin { file, assumed, derived };
  std::string name;  ///< as in config.json
  Json value;
  Origin origin;       ///< written in the file; assumed as the family's default; computed from others
  std::string source;  ///< the key in the file: "rope_theta", "qwen2.rope.freq_base"; empty unless `file`
};
std::string_view name(ConfigField::Origin origin) noexcept;

/// The values the engine goes by, in the order of the model's description; for a model it does not run, the
/// fields of the file.
std::vector<ConfigField> config_fields(const Listing& listing, const ModelCard& card);
/// Fields of config.json that have no effect here, by name.
std::vector<std::string> unused_fields(const Listing& listing, const ModelCard& card);

}  // namespace qwench
