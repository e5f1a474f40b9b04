#include "inspect/model_card.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "core/utf8.h"
#include "inspect/mixture.h"
#include "qwench/error.h"

namespace qwench {
namespace {

bool is_buffer(const ListedTensor& tensor) {
  return tensor.name.find("rotary_emb.") != std::string::npos || tensor.name == "rope_freqs.weight" ||
         tensor.name.ends_with(".self_attn.bias") || tensor.name.ends_with(".self_attn.masked_bias");
}

std::string text_field(const Listing& listing, const char* field) {
  const Json& config = listing.config();
  if (!config.is_object()) return {};
  const auto found = config.find(field);
  if (found == config.end()) return {};
  const Json& value = found->is_array() && !found->empty() ? found->front() : *found;
  return value.is_string() ? to_valid_utf8(value.get<std::string>()) : std::string();
}

bool is_tied(const Listing& listing, const std::optional<ModelConfig>& config) {
  if (config) return config->tie_word_embeddings;
  if (listing.find("lm_head.weight") == nullptr) return listing.find("model.embed_tokens.weight") != nullptr;
  const Json& json = listing.config();
  return json.is_object() && json.value("tie_word_embeddings", Json(false)) == Json(true);
}

}  // namespace

ModelCard model_card(const Listing& listing) {
  ModelCard card;
  card.name = listing.name();
  card.format = listing.format();
  try {
    const auto checkpoint = Checkpoint::open(listing.path());
    if (checkpoint->has_config()) {
      card.config = checkpoint->config();
    } else {
      card.not_run = "the file has no config";
    }
  } catch (const Error& error) {
    card.not_run = error.what();
  }
  if (listing.gguf() == nullptr && is_mixture(listing.config())) {
    try {
      MixtureConfig::from_json(listing.config(), (listing.path() / "config.json").string());
    } catch (const Error& error) {
      card.not_run = error.what();
    }
  }
  card.architecture = text_field(listing, "architectures");
  card.family = card.config ? card.config->family : text_field(listing, "model_type");
  if (const GgufFile* gguf = listing.gguf()) {
    if (const auto architecture = gguf->string("general.architecture"))
      card.family = to_valid_utf8(*architecture);
  }
  card.tied = is_tied(listing, card.config);

  int64_t experts = 0;
  std::map<int, int64_t> by_layer;
  for (const ListedTensor& tensor : listing.tensors()) {
    card.bytes_by_type[tensor.type_name] += tensor.bytes.size();
    const bool head = tensor.name == "lm_head.weight";
    if (is_buffer(tensor) || (head && card.tied)) continue;
    const int64_t count = tensor.count();
    card.parameters += count;
    if (head) card.head_parameters += count;
    if (tensor.is_embedding()) card.embedding_parameters += count;
    if (tensor.is_expert()) experts += count;
    if (const auto layer = tensor.layer()) by_layer[*layer] += count;
  }
  card.layers = static_cast<int>(by_layer.size());
  for (const auto& [layer, count] : by_layer) {
    card.layer_parameters = std::max(card.layer_parameters, count);
    card.layers_parameters += count;
  }
  card.active_parameters = card.parameters;
  std::optional<int64_t> all = listing.integer("num_experts", "expert_count");
  for (const char* other : {"num_local_experts", "n_routed_experts"}) {
    if (!all) all = listing.integer(other, "");
  }
  const auto used = listing.integer("num_experts_per_tok", "expert_used_count");
  if (experts > 0 && all && used && *used > 0 && *used <= *all) {
    card.active_parameters = card.parameters - experts + experts / *all * *used;
  }
  return card;
}

Json to_json(const ModelCard& card, const Listing& listing) {
  Json files = Json::array();
  for (const ListedFile& file : listing.files()) {
    files.push_back({{"path", to_valid_utf8(file.path.string())}, {"bytes", file.bytes}});
  }
  Json types = Json::object();
  for (const auto& [type, bytes] : card.bytes_by_type) types[type] = bytes;
  return {{"name", to_valid_utf8(card.name)},
          {"family", card.family},
          {"architecture", card.architecture},
          {"format", card.format},
          {"parameters", card.parameters},
          {"embedding_parameters", card.embedding_parameters},
          {"head_parameters", card.head_parameters},
          {"layer_parameters", card.layer_parameters},
          {"layers_parameters", card.layers_parameters},
          {"active_parameters", card.active_parameters},
          {"layers", card.layers},
          {"tied", card.tied},
          {"tensors", listing.tensors().size()},
          {"bytes_by_type", std::move(types)},
          {"files", std::move(files)},
          {"bytes", listing.bytes()},
          {"runs", card.not_run.empty()},
          {"why_not", card.not_run.empty() ? Json(nullptr) : Json(to_valid_utf8(card.not_run))}};
}

}  // namespace qwench
