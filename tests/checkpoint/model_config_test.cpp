#include "checkpoint/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "checkpoint/test_files.h"

namespace qwench {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Json base() {
  return Json::parse(
      R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 320, "max_position_embeddings": 512})");
}

/// base() with the fields of `patch` set.
ModelConfig read_config(const std::string& patch) {
  Json json = base();
  json.update(Json::parse(patch));
  return ModelConfig::from_json(json, "config.json");
}

std::pair<std::string, ErrorKind> config_refusal(const std::string& patch) {
  return error_of([&] { read_config(patch); });
}

TEST(ModelConfig, BothConfigStylesOfEveryTinyModelAgree) {
  int dense = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_data("models"))) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Json old_style = read_json(entry.path() / "config.json");
    const Json new_style = read_json(entry.path() / "config.v5.json");
    if (old_style["model_type"].get<std::string>().ends_with("_moe")) {
      ++refused;
      for (const Json& json : {old_style, new_style}) {
        const auto [message, kind] = error_of([&] { ModelConfig::from_json(json, "config.json"); });
        EXPECT_EQ(kind, ErrorKind::unsupported);
        EXPECT_THAT(message, HasSubstr("mixture-of-experts models"));
      }
      continue;
    }
    ++dense;
    const ModelConfig config = ModelConfig::from_json(old_style, "config.json");
    EXPECT_TRUE(config == ModelConfig::from_json(new_style, "config.v5.json"));
    EXPECT_EQ(config.hidden_size, old_style["hidden_size"].get<int>());
    EXPECT_EQ(config.sliding_window.size(), static_cast<size_t>(config.num_layers));
  }
  std::printf("configs in both styles: %d of 10 dense models, %d mixture-of-experts refused\n", dense,
              refused);
  EXPECT_EQ(dense, 10);
  EXPECT_EQ(refused, 2);
}

TEST(ModelConfig, PublishedShapesAreRead) {
  const ModelConfig qwen3 =
      ModelConfig::from_json(read_json(test_data("models/qwen3-tiny-f32/config.json")), "");
  EXPECT_EQ(qwen3.family, "qwen3");
  EXPECT_EQ(qwen3.head_dim, 32);  // not hidden_size / num_heads = 16
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.tie_word_embeddings);
  EXPECT_EQ(qwen3.rope.theta, 1e6);
  EXPECT_EQ(qwen3.stored_dtype, DType::f32);
  EXPECT_THAT(qwen3.eos_token_ids, ElementsAre(271));
  EXPECT_EQ(qwen3.bos_token_id, 0);

  const ModelConfig window =
      ModelConfig::from_json(read_json(test_data("models/qwen2-tiny-window/config.json")), "");
  EXPECT_THAT(window.sliding_window, ElementsAre(0, 0, 16, 16));

  const ModelConfig yarn =
      ModelConfig::from_json(read_json(test_data("models/qwen2-tiny-yarn/config.json")), "");
  EXPECT_EQ(yarn.rope.type, RopeConfig::Type::yarn);
  EXPECT_EQ(yarn.rope.factor, 4.0);
  EXPECT_EQ(yarn.rope.original_max_position, 64.0);
  EXPECT_THAT(yarn.sliding_window, Each(0));

  const ModelConfig llama3 =
      ModelConfig::from_json(read_json(test_data("models/llama-tiny-rope3/config.json")), "");
  EXPECT_EQ(llama3.rope.type, RopeConfig::Type::llama3);
  EXPECT_EQ(llama3.rope.high_freq_factor, 4.0);
  EXPECT_THAT(llama3.eos_token_ids, ElementsAre(273, 74));
}

TEST(ModelConfig, AbsentFieldsHaveTheDefaultsOfTransformers) {
  const Json minimal = Json::parse(R"({"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 320})");
  const auto of = [&](const char* family) {
    Json json = minimal;
    json["model_type"] = family;
    return ModelConfig::from_json(json, "");
  };
  const ModelConfig qwen2 = of("qwen2");
  EXPECT_EQ(qwen2.num_kv_heads, 4);
  EXPECT_EQ(qwen2.head_dim, 16);
  EXPECT_EQ(qwen2.max_position, 32768);
  EXPECT_EQ(qwen2.rms_norm_eps, 1e-6f);
  EXPECT_EQ(qwen2.rope.theta, 10000.0);
  EXPECT_EQ(qwen2.rope.type, RopeConfig::Type::standard);
  EXPECT_FALSE(qwen2.tie_word_embeddings);
  EXPECT_EQ(of("qwen3").head_dim, 128);
  EXPECT_EQ(of("llama").max_position, 2048);
  EXPECT_EQ(of("llama").head_dim, 16);
}

TEST(ModelConfig, EachMissingFieldIsNamed) {
  for (const char* key : {"model_type", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "vocab_size"}) {
    Json json = base();
    json.erase(key);
    EXPECT_THAT(error_of([&] { ModelConfig::from_json(json, "config.json"); }).first,
                HasSubstr("config.json: `" + std::string(key) + "` is missing"));
    json[key] = nullptr;
    EXPECT_THAT(error_of([&] { ModelConfig::from_json(json, "config.json"); }).first,
                HasSubstr("is missing"));
  }
}

TEST(ModelConfig, EachWrongFieldIsNamedWithWhatWasFound) {
  struct Case {
    const char* patch;
    const char* field;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"hidden_size": "64"})", "`hidden_size` is \"64\""},
           {R"({"hidden_size": true})", "`hidden_size` is true"},
           {R"({"hidden_size": 64.0})", "`hidden_size` is 64.0"},
           {R"({"hidden_size": [64]})", "`hidden_size` is a list of 1 values"},
           {R"({"hidden_size": 0})", "`hidden_size` is 0"},
           {R"({"intermediate_size": -1})", "`intermediate_size` is -1"},
           {R"({"num_hidden_layers": 2000000000})", "`num_hidden_layers`"},
           {R"({"vocab_size": 18446744073709551615})", "`vocab_size`"},
           {R"({"num_attention_heads": 0})", "`num_attention_heads`"},
           {R"({"num_key_value_heads": 0})", "`num_key_value_heads`"},
           {R"({"num_key_value_heads": 3})", "4 attention heads are no multiple of 3"},
           {R"({"num_key_value_heads": 8})", "4 attention heads are no multiple of 8"},
           {R"({"num_attention_heads": 6, "num_key_value_heads": 2})", "`head_dim` is missing"},
           {R"({"head_dim": 15})", "15 dimensions"},
           {R"({"head_dim": 0})", "`head_dim`"},
           {R"({"head_dim": "16"})", "`head_dim`"},
           {R"({"rms_norm_eps": 0})", "epsilon"},
           {R"({"rms_norm_eps": -1e-6})", "epsilon"},
           {R"({"rms_norm_eps": 1e300})", "epsilon"},
           {R"({"rms_norm_eps": "1e-6"})", "`rms_norm_eps`"},
           {R"({"max_position_embeddings": 0})", "`max_position_embeddings`"},
           {R"({"tie_word_embeddings": 1})", "`tie_word_embeddings` is 1, expected true or false"},
           {R"({"attention_bias": "no"})", "`attention_bias`"},
           {R"({"rope_theta": "1e6"})", "`rope_theta`"},
           {R"({"rope_theta": 0})", "`rope_theta`"},
           {R"({"rope_theta": -5})", "`rope_theta`"},
           {R"({"eos_token_id": -1})", "`eos_token_id`"},
           {R"({"eos_token_id": [1, "2"]})", "`eos_token_id`"},
           {R"({"eos_token_id": [1, 2.5]})", "`eos_token_id`"},
           {R"({"eos_token_id": 4294967296})", "`eos_token_id`"},
           {R"({"bos_token_id": "x"})", "`bos_token_id`"},
           {R"({"model_type": 7})", "`model_type`"},
           {R"({"architectures": "Qwen2ForCausalLM"})", "`architectures`"},
           {R"({"hidden_act": 1})", "`hidden_act`"},
           {R"({"torch_dtype": 16})", "`torch_dtype`"},
           {R"({"layer_types": ["full_attention"]})", "`layer_types` has 1 entries for 4 layers"},
           {R"({"layer_types": "full_attention"})", "`layer_types`"},
           {R"({"sliding_window": -4})", "`sliding_window`"},
           {R"({"use_sliding_window": "yes"})", "`use_sliding_window`"},
           {R"({"max_window_layers": 1.5})", "`max_window_layers`"}}) {
    const auto [message, kind] = config_refusal(c.patch);
    EXPECT_EQ(kind, ErrorKind::malformed) << c.patch;
    EXPECT_THAT(message, HasSubstr(c.field)) << c.patch;
    EXPECT_THAT(message, testing::StartsWith("config.json: ")) << c.patch;
  }
}

TEST(ModelConfig, WhatIsNotSupportedIsRefusedWithASentence) {
  struct Case {
    const char* patch;
    const char* words;
  };
  for (
      const Case& c : std::vector<Case>{
          {R"({"model_type": "mamba"})", "qwen2, qwen3 and llama are supported"},
          {R"({"model_type": "qwen3_moe"})", "mixture-of-experts models"},
          {R"({"model_type": "qwen2_5_vl", "vision_config": {}})", "images"},
          {R"({"num_experts": 8})", "mixture-of-experts models"},
          {R"({"architectures": ["Qwen2ForSequenceClassification"]})", "Qwen2ForSequenceClassification"},
          {R"({"hidden_act": "gelu"})", "only silu"},
          {R"({"quantization_config": {"quant_method": "awq"}})", "awq"},
          {R"({"mlp_bias": true})", "`mlp_bias`"},
          {R"({"torch_dtype": "float8_e4m3fn"})", "float8_e4m3fn"},
          {R"({"partial_rotary_factor": 0.5})", "`partial_rotary_factor` is 0.5"},
          {R"({"rope_parameters": {"partial_rotary_factor": 0.25, "rope_type": "default"}})",
           "`partial_rotary_factor`"},
          {R"({"rope_scaling": {"rope_type": "longrope", "factor": 2.0}})",
           "default, linear, dynamic, yarn and llama3"},
          {R"({"rope_scaling": {"type": "mrope", "mrope_section": [1, 2]}})", "mrope"},
          {R"({"layer_types": ["full_attention", "full_attention", "full_attention", "linear_attention"]})",
           "linear_attention"},
          {R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}})",
           "differ by layer type"}}) {
    const auto [message, kind] = config_refusal(c.patch);
    EXPECT_EQ(kind, ErrorKind::unsupported) << c.patch;
    EXPECT_THAT(message, HasSubstr(c.words)) << c.patch;
  }
  EXPECT_EQ(
      config_refusal(R"({"model_type": "llama", "use_sliding_window": true, "sliding_window": 8})").second,
      ErrorKind::unsupported);
}

TEST(ModelConfig, RopeScalingIsNamedByTypeOrRopeType) {
  for (const char* key : {"type", "rope_type"}) {
    const ModelConfig config =
        read_config(R"({"rope_scaling": {")" + std::string(key) + R"(": "linear", "factor": 2}})");
    EXPECT_EQ(config.rope.type, RopeConfig::Type::linear);
    EXPECT_EQ(config.rope.factor, 2.0);
  }
  EXPECT_EQ(read_config(R"({"rope_scaling": null})").rope.type, RopeConfig::Type::standard);
  EXPECT_EQ(read_config(R"({"rope_scaling": {}})").rope.type, RopeConfig::Type::standard);
  EXPECT_EQ(read_config(R"({"rope_theta": 5000, "rope_scaling": {"rope_type": "default"}})").rope.theta,
            5000.0);
  EXPECT_EQ(read_config(R"({"rope_parameters": {"rope_theta": 7000, "rope_type": "default"}})").rope.theta,
            7000.0);
  EXPECT_EQ(read_config(R"({"rope_theta": 7000, "rope_parameters": {"rope_type": "default"}})").rope.theta,
            7000.0);
  EXPECT_EQ(
      read_config(
          R"({"rope_parameters": {"full_attention": {"rope_theta": 7000}, "sliding_attention": {"rope_theta": 7000}}})")
          .rope.theta,
      7000.0);
}

TEST(ModelConfig, DynamicScalingStartsAtTheConfigsOwnLength) {
  const ModelConfig config = read_config(R"({"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}})");
  EXPECT_EQ(config.rope.type, RopeConfig::Type::dynamic);
  EXPECT_EQ(config.rope.original_max_position, 512.0);
  EXPECT_EQ(config.max_position, 2048);
}

TEST(ModelConfig, YarnHasItsOptionsAndStretchesTheContext) {
  const ModelConfig advised = read_config(
      R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}})");
  EXPECT_EQ(advised.max_position, 2048);
  EXPECT_EQ(advised.rope.beta_fast, 32.0);
  EXPECT_EQ(advised.rope.beta_slow, 1.0);
  EXPECT_EQ(advised.rope.attention_factor, std::nullopt);
  EXPECT_TRUE(advised.rope.truncate);
  EXPECT_EQ(read_config(R"({"rope_scaling": {"type": "yarn", "factor": 4.0}})").rope.original_max_position,
            512.0);
  const ModelConfig full = read_config(
      R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 256,
    "beta_fast": 16, "beta_slow": 2, "attention_factor": 1.1, "mscale": 1.0, "mscale_all_dim": 0.5, "truncate": false}})");
  EXPECT_EQ(full.rope.beta_fast, 16.0);
  EXPECT_EQ(full.rope.attention_factor, 1.1);
  EXPECT_EQ(full.rope.mscale_all_dim, 0.5);
  EXPECT_FALSE(full.rope.truncate);
}

TEST(ModelConfig, RopeScalingIsHeldToItsRanges) {
  struct Case {
    const char* scaling;
    const char* words;
  };
  for (
      const Case& c : std::vector<Case>{
          {R"("linear")", "expected an object"},
          {R"([])", "expected an object"},
          {R"({"factor": 2.0})", "`rope_type` is missing"},
          {R"({"rope_type": 3})", "`rope_type` is 3"},
          {R"({"rope_type": "linear"})", "`factor` is missing"},
          {R"({"rope_type": "linear", "factor": 0})", "`factor` is 0"},
          {R"({"rope_type": "linear", "factor": -2.0})", "`factor` is -2.0"},
          {R"({"rope_type": "linear", "factor": "2"})", "`factor`"},
          {R"({"rope_type": "dynamic"})", "`factor` is missing"},
          {R"({"rope_type": "yarn"})", "`factor` is missing"},
          {R"({"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 0})",
           "`original_max_position_embeddings`"},
          {R"({"rope_type": "yarn", "factor": 2, "attention_factor": -1})", "`attention_factor`"},
          {R"({"rope_type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 32})", "`beta_fast`"},
          {R"({"rope_type": "llama3", "factor": 8})", "`original_max_position_embeddings` is missing"},
          {R"({"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 64})",
           "`low_freq_factor` is missing"},
          {R"({"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 64, "low_freq_factor": 4, "high_freq_factor": 4})",
           "`high_freq_factor`"}}) {
    const auto [message, kind] = config_refusal(R"({"rope_scaling": )" + std::string(c.scaling) + "}");
    EXPECT_EQ(kind, ErrorKind::malformed) << c.scaling;
    EXPECT_THAT(message, HasSubstr(c.words)) << c.scaling;
    EXPECT_THAT(message, HasSubstr("rope_scaling")) << c.scaling;
  }
  EXPECT_THAT(
      config_refusal(
          R"({"rope_scaling": {"rope_type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "default"}})")
          .first,
      HasSubstr("contradict"));
}

TEST(ModelConfig, SlidingWindowsAreGivenByLayer) {
  EXPECT_THAT(read_config(R"({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1})")
                  .sliding_window,
              ElementsAre(0, 8, 8, 8));
  EXPECT_THAT(read_config(R"({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 9})")
                  .sliding_window,
              Each(0));
  EXPECT_THAT(read_config(R"({"use_sliding_window": true, "max_window_layers": 3})").sliding_window,
              ElementsAre(0, 0, 0, 4096));
  EXPECT_THAT(read_config(R"({"use_sliding_window": false, "sliding_window": 8, "max_window_layers": 0})")
                  .sliding_window,
              Each(0));
  EXPECT_THAT(read_config(R"({"sliding_window": 8, "max_window_layers": 0})").sliding_window, Each(0));
  EXPECT_THAT(
      read_config(
          R"({"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})")
          .sliding_window,
      ElementsAre(8, 0, 8, 0));
  EXPECT_THAT(
      config_refusal(R"({"use_sliding_window": true, "sliding_window": null, "max_window_layers": 0})").first,
      HasSubstr("`sliding_window`"));
  EXPECT_THAT(
      config_refusal(
          R"({"use_sliding_window": false, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention"]})")
          .first,
      HasSubstr("`use_sliding_window` is false"));
}

}  // namespace
}  // namespace qwench
