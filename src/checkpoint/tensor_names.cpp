#include "checkpoint/tensor_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace qwench {
namespace {

using Pair =
    std::pair<std::string_view, std::string_view>;  // GGUF, Hugging Face; without ".weight" or ".bias"

constexpr std::array<Pair, 11> kInLayer{{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};
constexpr std::array<Pair, 3> kOutside{{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};
constexpr std::string_view kGgufLayer = "blk.";
constexpr std::string_view kLayer = "model.layers.";

/// Splits the ".weight" or ".bias" off; the suffix is empty when there is none.
std::pair<std::string_view, std::string_view> split_suffix(std::string_view name) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (name.ends_with(suffix)) return {name.substr(0, name.size() - suffix.size()), suffix};
  }
  return {name, {}};
}

/// `name` with the parts of `pairs` and the layer prefix changed from one side to the other; empty when it
/// has none.
std::string renamed(std::string_view name, bool from_gguf) {
  const auto from = [&](const Pair& pair) { return from_gguf ? pair.first : pair.second; };
  const auto to = [&](const Pair& pair) { return from_gguf ? pair.second : pair.first; };
  const auto [stem, suffix] = split_suffix(name);
  if (suffix.empty()) return {};
  const auto translate = [&](const auto& pairs, std::string_view part) -> std::string {
    const auto found =
        std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return from(pair) == part; });
    return found == pairs.end() ? std::string() : std::string(to(*found));
  };
  const std::string_view layer = from_gguf ? kGgufLayer : kLayer;
  if (!stem.starts_with(layer)) {
    const std::string other = translate(kOutside, stem);
    return other.empty() ? other : other + std::string(suffix);
  }
  const std::string_view rest = stem.substr(layer.size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return {};
  const std::string other = translate(kInLayer, rest.substr(dot + 1));
  if (other.empty()) return other;
  std::string result(from_gguf ? kLayer : kGgufLayer);
  return result.append(rest.substr(0, dot + 1)).append(other).append(suffix);
}

}  // namespace

std::string canonical_name(std::string_view name) {
  for (const std::string_view place : {"layers.", "embed_tokens.", "norm."}) {
    if (name.starts_with(place)) return "model." + std::string(name);
  }
  return std::string(name);
}

std::string canonical_gguf_name(std::string_view name) {
  std::string result = renamed(name, true);
  return result.empty() ? std::string(name) : result;
}

std::string gguf_name(std::string_view canonical) { return renamed(canonical, false); }

}  // namespace qwench
