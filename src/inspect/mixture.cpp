#include "inspect/mixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/json_fields.h"
#include "checkpoint/model_limits.h"
#include "checkpoint/printable.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/weight_files.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Kind = ExpectedTensor::Kind;
constexpr int64_t kMaxExperts = 1 << 16;

/// Which layers have experts: each decoder_sparse_step-th, but for mlp_only_layers.
std::vector<bool> read_sparse_layers(const JsonFields& fields, int layers) {
  const int64_t step = fields.integer("decoder_sparse_step", 1, limits::kLayers).value_or(1);
  std::vector<bool> sparse(static_cast<size_t>(layers));
  for (int64_t i = 0; i < layers; ++i) sparse[static_cast<size_t>(i)] = (i + 1) % step == 0;
  if (const Json* dense = fields.find("mlp_only_layers")) {
    const std::string expected = fmt::format("a list of layers from 0 to {}", layers - 1);
    if (!dense->is_array()) fields.wrong("mlp_only_layers", *dense, expected);
    for (const Json& layer : *dense) {
      if (!layer.is_number_integer() || layer < 0 || layer >= layers)
        fields.wrong("mlp_only_layers", *dense, expected);
      sparse[layer.get<size_t>()] = false;
    }
  }
  return sparse;
}

/// The config of the same model without experts.
ModelConfig read_dense(const Json& json, const std::string& family, const std::string& what) {
  Json dense = json;
  dense["model_type"] = family == "qwen2_moe" ? "qwen2" : "qwen3";
  dense.erase("architectures");
  dense.erase("num_experts");
  const JsonFields fields(dense, what);
  if (!fields.has("intermediate_size") && fields.has("moe_intermediate_size"))
    dense["intermediate_size"] = dense["moe_intermediate_size"];
  if (!fields.has("head_dim") && fields.has("hidden_size") && fields.has("num_attention_heads")) {
    const int64_t hidden = fields.required_integer("hidden_size", 1, limits::kWidth);
    const int64_t heads = fields.required_integer("num_attention_heads", 1, limits::kHeads);
    if (hidden % heads == 0) dense["head_dim"] = hidden / heads;
  }
  return ModelConfig::from_json(dense, what);
}

void check_architecture(const JsonFields& fields, const std::string& family) {
  const std::string known = family == "qwen2_moe" ? "Qwen2Moe" : "Qwen3Moe";
  const auto names = fields.strings("architectures");
  if (!names || names->empty()) return;
  const bool found = std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return name == known + "ForCausalLM" || name == known + "Model";
  });
  if (!found) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: `architectures` names {}, but a {} model is {}ForCausalLM", fields.what(),
                            printable(std::string_view(names->front())), family, known));
  }
}

/// A layer's feed-forward part: its one MLP, or a router and its experts.
void add_feed_forward(const MixtureConfig& config, int layer, std::vector<ExpectedTensor>& list) {
  const int64_t hidden = config.dense.hidden_size;
  const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
  const auto add = [&](const std::string& name, int64_t size) {
    list.push_back({mlp + name + "gate_proj.weight", {size, hidden}, Kind::matrix, false});
    list.push_back({mlp + name + "up_proj.weight", {size, hidden}, Kind::matrix, false});
    list.push_back({mlp + name + "down_proj.weight", {hidden, size}, Kind::matrix, false});
  };
  if (!config.sparse[static_cast<size_t>(layer)]) return add("", config.dense.intermediate_size);
  list.push_back({mlp + "gate.weight", {config.experts, hidden}, Kind::matrix, false});
  for (int i = 0; i < config.experts; ++i)
    add(fmt::format("experts.{}.", i), config.expert_intermediate_size);
  if (config.shared_intermediate_size == 0) return;
  add("shared_expert.", config.shared_intermediate_size);
  list.push_back({mlp + "shared_expert_gate.weight", {1, hidden}, Kind::matrix, false});
}

bool is_redundant(std::string_view name, const MixtureConfig& config) {
  return (name == "lm_head.weight" && config.dense.tie_word_embeddings) || name.ends_with(".inv_freq");
}

}  // namespace

bool is_mixture(const Json& config) {
  if (!config.is_object()) return false;
  const auto type = config.find("model_type");
  return type != config.end() && (*type == "qwen2_moe" || *type == "qwen3_moe");
}

MixtureConfig MixtureConfig::from_json(const Json& json, const std::string& what) {
  const JsonFields fields(json, what);
  MixtureConfig config;
  config.family = fields.string("model_type").value_or("");
  check_architecture(fields, config.family);
  config.dense = read_dense(json, config.family, what);
  const auto count = [&](const char* key, int64_t high) {
    return static_cast<int>(fields.required_integer(key, 1, high));
  };
  config.experts = count("num_experts", kMaxExperts);
  config.experts_per_token = count("num_experts_per_tok", kMaxExperts);
  if (config.experts_per_token > config.experts) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: `num_experts_per_tok` is {}, more than the {} experts of `num_experts`",
                            what, config.experts_per_token, config.experts));
  }
  config.expert_intermediate_size = count("moe_intermediate_size", limits::kWidth);
  if (config.family == "qwen2_moe")
    config.shared_intermediate_size = count("shared_expert_intermediate_size", limits::kWidth);
  config.sparse = read_sparse_layers(fields, config.dense.num_layers);
  const bool has_dense = std::find(config.sparse.begin(), config.sparse.end(), false) != config.sparse.end();
  if (has_dense) fields.required_integer("intermediate_size", 1, limits::kWidth);
  for (const char* flag : {"norm_topk_prob", "output_router_logits"}) (void)fields.boolean(flag);
  (void)fields.number("router_aux_loss_coef");
  return config;
}

std::vector<ExpectedTensor> expected_tensors(const MixtureConfig& config) {
  std::vector<ExpectedTensor> list;
  for (ExpectedTensor& tensor : expected_tensors(config.dense)) {
    if (tensor.name.find(".mlp.") == std::string::npos) {
      list.push_back(std::move(tensor));
    } else if (tensor.name.ends_with(".mlp.gate_proj.weight")) {
      const std::string_view number =
          std::string_view(tensor.name).substr(std::string_view("model.layers.").size());
      add_feed_forward(config, std::stoi(std::string(number)), list);
    }
  }
  return list;
}

std::vector<std::string> tensor_problems(const Listing& listing, const MixtureConfig& config) {
  const std::string file = listing.path().string();
  const auto layers = std::count(config.sparse.begin(), config.sparse.end(), true);
  const int64_t least = int64_t{layers} * config.experts * 3;
  if (least > static_cast<int64_t>(listing.tensors().size())) {
    return {
        fmt::format("{}: {} tensors, but the config asks for {} of experts alone ({} layers of {} experts)",
                    file, listing.tensors().size(), least, layers, config.experts)};
  }
  std::vector<std::string> problems;
  std::unordered_map<std::string_view, const ListedTensor*> there;
  for (const ListedTensor& tensor : listing.tensors()) {
    if (!there.emplace(tensor.name, &tensor).second)
      problems.push_back(
          fmt::format("{}: tensor {} is there twice", file, printable(std::string_view(tensor.name))));
  }
  for (const auto& [tensor, shard] : find_weight_files(listing.path()).weight_map) {
    if (!there.contains(canonical_name(tensor))) {
      problems.push_back(fmt::format("{}: the index names tensor {} of {}, but no file holds it", file,
                                     printable(std::string_view(tensor)),
                                     printable(std::string_view(shard))));
    }
  }
  const std::vector<ExpectedTensor> expected = expected_tensors(config);
  const auto is_output = [](std::string_view name) { return name.ends_with(".o_proj.bias"); };
  bool biases[2] = {false, false};  // biases are everywhere or nowhere
  for (const ExpectedTensor& e : expected) biases[is_output(e.name)] |= e.optional && there.contains(e.name);
  std::unordered_set<std::string_view> known;
  for (const ExpectedTensor& e : expected) {
    known.insert(e.name);
    const auto found = there.find(e.name);
    if (found == there.end()) {
      if (!e.optional || biases[is_output(e.name)])
        problems.push_back(fmt::format("{}: tensor {} is missing", file, e.name));
    } else if (found->second->shape != e.shape) {
      problems.push_back(fmt::format("{}: tensor {} has the shape [{}], but the config asks for [{}]", file,
                                     e.name, fmt::join(found->second->shape, ", "),
                                     fmt::join(e.shape, ", ")));
    } else if (!found->second->dtype) {
      problems.push_back(fmt::format("{}: tensor {} is of type {}; F32, F16 and BF16 can be read", file,
                                     e.name, printable(std::string_view(found->second->type_name))));
    }
  }
  for (const ListedTensor& tensor : listing.tensors()) {
    if (known.contains(tensor.name) || is_redundant(tensor.name, config)) continue;
    problems.push_back(
        fmt::format("{}: tensor {} is in the file, but a {} model with this config has no such tensor", file,
                    printable(std::string_view(tensor.name)), config.family));
  }
  return problems;
}

}  // namespace qwench
