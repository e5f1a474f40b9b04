#include "checkpoint/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/gguf.h"
#include "checkpoint/test_files.h"

namespace qwench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GenerationConfig read_generation(const std::string& text) {
  return GenerationConfig::from_json(Json::parse(text), "generation_config.json");
}

TEST(GenerationConfig, GivesSamplingDefaultsAndStopIds) {
  const GenerationConfig config = read_generation(
      R"({"bos_token_id": 151643, "do_sample": true, "eos_token_id": [151645, 151643], "pad_token_id": 151643,
    "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.05, "max_new_tokens": 2048, "transformers_version": "4.51.0"})");
  EXPECT_EQ(config.sampling.temperature, 0.6f);
  EXPECT_EQ(config.sampling.top_k, 20);
  EXPECT_EQ(config.sampling.top_p, 0.95f);
  EXPECT_EQ(config.sampling.min_p, 0.05f);
  EXPECT_EQ(config.sampling.repetition_penalty, 1.05f);
  EXPECT_EQ(config.sampling.presence_penalty, std::nullopt);
  EXPECT_EQ(config.max_new_tokens, 2048);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(151645, 151643));
  EXPECT_EQ(config.bos_token_id, 151643);
  EXPECT_EQ(config.pad_token_id, 151643);
}

TEST(GenerationConfig, WhatIsNotSaidStaysOpen) {
  const GenerationConfig config = read_generation(R"({"temperature": null})");
  EXPECT_EQ(config.sampling.temperature, std::nullopt);
  EXPECT_EQ(config.sampling.top_k, std::nullopt);
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST(GenerationConfig, NotSamplingIsGreedy) {
  EXPECT_EQ(read_generation(R"({"do_sample": false, "temperature": 0.7})").sampling.temperature, 0.0f);
}

TEST(GenerationConfig, MinusOneKeepsAllTokensAsZeroDoes) {
  EXPECT_EQ(read_generation(R"({"top_k": -1})").sampling.top_k, 0);
}

TEST(GenerationConfig, WrongFieldsAreNamed) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"temperature": -0.1})", "`temperature` is -0.1"},
           {R"({"temperature": "hot"})", "`temperature`"},
           {R"({"top_p": 0})", "`top_p` is 0"},
           {R"({"top_p": 1.1})", "`top_p` is 1.1"},
           {R"({"top_k": 2.5})", "`top_k`"},
           {R"({"top_k": -2})", "`top_k` is -2"},
           {R"({"min_p": 2})", "`min_p`"},
           {R"({"repetition_penalty": 0})", "`repetition_penalty`"},
           {R"({"eos_token_id": "</s>"})", "`eos_token_id`"},
           {R"({"do_sample": 1})", "`do_sample`"},
           {R"([])", "expected a JSON object"}}) {
    const auto [message, kind] = error_of([&, t = text] { read_generation(t); });
    EXPECT_EQ(kind, ErrorKind::malformed) << text;
    EXPECT_THAT(message, HasSubstr("generation_config.json")) << text;
    EXPECT_THAT(message, HasSubstr(words)) << text;
  }
}

TEST(GenerationConfig, SettingsThatAreNotSupportedAreSaid) {
  testing::internal::CaptureStderr();
  read_generation(R"({"num_beams": 4, "typical_p": 1.0, "no_repeat_ngram_size": 0})");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("`num_beams` is 4"));
  EXPECT_THAT(said, testing::Not(HasSubstr("typical_p")));
}

TEST(GenerationConfig, GgufFilesMayCarrySamplingDefaults) {
  const std::string file =
      GgufBuilder().f32("general.sampling.temp", 0.5f).raw("general.sampling.top_k", 5, packed(30)).build();
  const GenerationConfig config =
      GenerationConfig::from_gguf(GgufFile::parse(std::as_bytes(std::span(file)), "m.gguf"));
  EXPECT_EQ(config.sampling.temperature, 0.5f);
  EXPECT_EQ(config.sampling.top_k, 30);
}

}  // namespace
}  // namespace qwench
