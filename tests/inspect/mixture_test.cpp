#include "inspect/mixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "qwench/error.h"

namespace qwench {
namespace {

namespace fs = std::filesystem;

fs::path golden_folder(const std::string& name) { return fs::path(QWENCH_TEST_DATA) / "models" / name; }

Json config_of(const std::string& name) {
  std::ifstream file(golden_folder(name) / "config.json");
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), name);
}

/// The message for a config with one field changed; a discarded value removes it.
std::string refusal(const std::string& name, const std::string& field, const Json& value) {
  Json json = config_of(name);
  if (value.is_discarded())
    json.erase(field);
  else
    json[field] = value;
  try {
    MixtureConfig::from_json(json, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<std::string> problems(const std::string& name, const std::string& field, const Json& value) {
  Json json = config_of(name);
  json[field] = value;
  return tensor_problems(Listing::open(golden_folder(name)), MixtureConfig::from_json(json, "config.json"));
}

const Json kAbsent(Json::value_t::discarded);

TEST(Mixture, TheGoldenModelsHaveTheTensorsTheirConfigsAskFor) {
  for (const char* name : {"qwen2moe-tiny", "qwen3moe-tiny"}) {
    const Json json = config_of(name);
    ASSERT_TRUE(is_mixture(json)) << name;
    const MixtureConfig config = MixtureConfig::from_json(json, name);
    const Listing listing = Listing::open(golden_folder(name));
    EXPECT_EQ(tensor_problems(listing, config), std::vector<std::string>()) << name;
    EXPECT_EQ(config.experts_per_token, 2) << name;
  }
  EXPECT_EQ(MixtureConfig::from_json(config_of("qwen3moe-tiny"), "").sparse,
            (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(MixtureConfig::from_json(config_of("qwen2moe-tiny"), "").sparse,
            (std::vector<bool>{false, true, false, true}));
  EXPECT_FALSE(is_mixture(config_of("qwen3-tiny-f32")));
}

TEST(Mixture, FieldsAreCheckedAsThoseOfDenseModelsAre) {
  struct Case {
    const char* model;
    const char* field;
    Json value;
    const char* words;
  };
  const std::vector<Case> cases = {
      {"qwen3moe-tiny", "num_experts", kAbsent, "num_experts"},
      {"qwen3moe-tiny", "num_experts", 0, "num_experts"},
      {"qwen3moe-tiny", "num_experts", "8", "num_experts"},
      {"qwen3moe-tiny", "num_experts", 8.5, "num_experts"},
      {"qwen3moe-tiny", "num_experts_per_tok", 9, "more than the 8 experts"},
      {"qwen3moe-tiny", "num_experts_per_tok", 0, "num_experts_per_tok"},
      {"qwen3moe-tiny", "moe_intermediate_size", nullptr, "moe_intermediate_size"},
      {"qwen3moe-tiny", "moe_intermediate_size", -1, "moe_intermediate_size"},
      {"qwen3moe-tiny", "decoder_sparse_step", 0, "decoder_sparse_step"},
      {"qwen3moe-tiny", "mlp_only_layers", {4}, "mlp_only_layers"},
      {"qwen3moe-tiny", "mlp_only_layers", {1.5}, "mlp_only_layers"},
      {"qwen3moe-tiny", "mlp_only_layers", 1, "mlp_only_layers"},
      {"qwen3moe-tiny", "norm_topk_prob", "yes", "norm_topk_prob"},
      {"qwen3moe-tiny", "intermediate_size", kAbsent, "intermediate_size"},
      {"qwen3moe-tiny", "hidden_size", "64", "hidden_size"},
      {"qwen3moe-tiny", "num_key_value_heads", 3, "no multiple of 3"},
      {"qwen3moe-tiny", "architectures", {"Qwen3ForCausalLM"}, "Qwen3MoeForCausalLM"},
      {"qwen3moe-tiny", "quantization_config", {{"quant_method", "fp8"}}, "fp8"},
      {"qwen2moe-tiny", "shared_expert_intermediate_size", kAbsent, "shared_expert_intermediate_size"},
      {"qwen2moe-tiny", "rms_norm_eps", -1.0, "epsilon"},
  };
  for (const Case& c : cases) {
    const std::string message = refusal(c.model, c.field, c.value);
    EXPECT_NE(message.find(c.words), std::string::npos) << c.field << ": " << message;
  }
  EXPECT_EQ(refusal("qwen3moe-tiny", "decoder_sparse_step", kAbsent), "accepted");
  EXPECT_EQ(refusal("qwen3moe-tiny", "mlp_only_layers", nullptr), "accepted");
}

TEST(Mixture, EveryTensorOfEveryExpertIsCompared) {
  const auto first = [](const std::vector<std::string>& found) {
    return found.empty() ? "none" : found.front();
  };
  const auto larger = problems("qwen3moe-tiny", "moe_intermediate_size", 49);
  EXPECT_EQ(larger.size(), 3u * 8 * 3) << first(larger);
  EXPECT_NE(first(larger).find("mlp.experts.0.gate_proj.weight has the shape [48, 64]"), std::string::npos)
      << first(larger);
  const auto more = problems("qwen3moe-tiny", "num_experts", 9);
  EXPECT_EQ(more.size(), 3u * 4) << first(
      more);  // a router of another shape and three tensors, in three layers
  const auto fewer = problems("qwen3moe-tiny", "num_experts", 7);
  EXPECT_EQ(fewer.size(), 3u * 4) << first(fewer);
  const auto all_sparse = problems("qwen3moe-tiny", "mlp_only_layers", Json::array());
  EXPECT_EQ(all_sparse.size(), 1u + 8 * 3 + 3) << first(all_sparse);
  const auto huge = problems("qwen3moe-tiny", "num_experts", 65536);
  EXPECT_EQ(huge.size(), 1u) << first(huge);
}

}  // namespace
}  // namespace qwench
