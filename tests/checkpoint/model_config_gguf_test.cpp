#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "checkpoint/test_files.h"

namespace qwench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GgufConfig : public testing::Test {
 protected:
  ModelConfig read(const GgufBuilder& builder) {
    file_ = builder.build();
    return ModelConfig::from_gguf(GgufFile::parse(std::as_bytes(std::span(file_)), "test.gguf"));
  }
  std::pair<std::string, ErrorKind> refusal(const GgufBuilder& builder) {
    return error_of([&] { read(builder); });
  }

 private:
  std::string file_;
};

TEST_F(GgufConfig, LlamaPairsNeighboursAndQwenPairsHalves) {
  const ModelConfig llama = read(small_gguf("llama")
                                     .f32("llama.rope.freq_base", 5000.0f)
                                     .u32("tokenizer.ggml.eos_token_id", 2)
                                     .u32("tokenizer.ggml.eot_token_id", 3)
                                     .u32("tokenizer.ggml.eom_token_id", 2)
                                     .u32("tokenizer.ggml.bos_token_id", 1));
  EXPECT_TRUE(llama.interleaved_rope);
  EXPECT_FALSE(llama.qk_norm);
  EXPECT_EQ(llama.rope.theta, 5000.0);
  EXPECT_EQ(llama.head_dim, 8);
  EXPECT_EQ(llama.vocab_size, 32);
  EXPECT_EQ(llama.max_position, 64);
  EXPECT_EQ(llama.rms_norm_eps, 1e-5f);
  EXPECT_TRUE(llama.tie_word_embeddings);
  EXPECT_THAT(llama.eos_token_ids, ElementsAre(2, 3));
  EXPECT_EQ(llama.bos_token_id, 1);
  const ModelConfig qwen3 = read(small_gguf("qwen3")
                                     .f32_tensor("output.weight", {32, 16})
                                     .u32("qwen3.attention.key_length", 24)
                                     .u32("qwen3.attention.value_length", 24));
  EXPECT_FALSE(qwen3.interleaved_rope);
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_EQ(qwen3.head_dim, 24);
  EXPECT_FALSE(qwen3.tie_word_embeddings);
}

TEST_F(GgufConfig, TheVocabularyIsAsLargeAsTheEmbedding) {
  EXPECT_EQ(read(small_gguf("qwen2").remove("qwen2.vocab_size").f32_tensor("token_embd.weight", {40, 16}))
                .vocab_size,
            40);
  EXPECT_THAT(refusal(small_gguf("qwen2").remove("qwen2.vocab_size")).first,
              HasSubstr("qwen2.vocab_size is missing"));
  EXPECT_THAT(refusal(small_gguf("qwen2").raw("tokenizer.ggml.tokens", 9,
                                              packed(8U) + packed<uint64_t>(33) + std::string(33 * 8, '\0')))
                  .first,
              HasSubstr("33 tokens, more than the vocabulary of 32"));
}

TEST_F(GgufConfig, CountsMayBeGivenOnceALayer) {
  const std::string two = packed(5U) + packed<uint64_t>(2);
  const GgufBuilder same = small_gguf("llama")
                               .remove("llama.block_count")
                               .u32("llama.block_count", 2)
                               .remove("llama.attention.head_count_kv")
                               .raw("llama.attention.head_count_kv", 9, two + packed(1) + packed(1));
  EXPECT_EQ(read(same).num_kv_heads, 1);
  const GgufBuilder mixed = small_gguf("llama")
                                .remove("llama.block_count")
                                .u32("llama.block_count", 2)
                                .remove("llama.attention.head_count_kv")
                                .raw("llama.attention.head_count_kv", 9, two + packed(1) + packed(2));
  EXPECT_THAT(refusal(mixed).first, HasSubstr("differs by layer"));
}

TEST_F(GgufConfig, EachMissingKeyIsNamed) {
  for (const char* key : {"context_length", "embedding_length", "block_count", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    const std::string full = std::string("qwen2.") + key;
    const auto [message, kind] = refusal(small_gguf("qwen2").remove(full));
    EXPECT_EQ(kind, ErrorKind::malformed);
    EXPECT_THAT(message, HasSubstr("test.gguf: " + full + " is missing"));
  }
  EXPECT_THAT(refusal(GgufBuilder()).first, HasSubstr("general.architecture is missing"));
  EXPECT_EQ(read(small_gguf("qwen2").remove("qwen2.attention.head_count_kv")).num_kv_heads, 2);
}

TEST_F(GgufConfig, WrongValuesAreNamed) {
  const auto with = [](const char* key, auto value) {
    GgufBuilder builder = small_gguf("qwen2");
    builder.remove(key);
    if constexpr (std::is_same_v<decltype(value), float>)
      builder.f32(key, value);
    else if constexpr (std::is_same_v<decltype(value), const char*>)
      builder.string(key, value);
    else
      builder.u32(key, static_cast<uint32_t>(value));
    return builder;
  };
  EXPECT_THAT(refusal(with("qwen2.block_count", 0)).first, HasSubstr("qwen2.block_count is 0"));
  EXPECT_THAT(refusal(with("qwen2.block_count", 2000000000)).first, HasSubstr("qwen2.block_count"));
  EXPECT_THAT(refusal(with("qwen2.attention.head_count", 0)).first, HasSubstr("head_count is 0"));
  EXPECT_THAT(refusal(with("qwen2.attention.head_count", "two")).first, HasSubstr("type string"));
  EXPECT_THAT(refusal(with("qwen2.attention.head_count", 2.0f)).first, HasSubstr("type float32"));
  EXPECT_THAT(refusal(with("qwen2.attention.head_count", 3)).first, HasSubstr("no multiple"));
  EXPECT_THAT(refusal(with("qwen2.attention.head_count_kv", 0)).first, HasSubstr("head_count_kv is 0"));
  EXPECT_THAT(refusal(with("qwen2.attention.key_length", 7)).first, HasSubstr("7 dimensions"));
  EXPECT_THAT(refusal(with("qwen2.attention.value_length", 4)).first, HasSubstr("value_length is 4"));
  EXPECT_THAT(refusal(with("qwen2.attention.layer_norm_rms_epsilon", std::nanf(""))).first,
              HasSubstr("epsilon"));
  EXPECT_THAT(refusal(with("qwen2.rope.freq_base", 0.0f)).first, HasSubstr("freq_base"));
  EXPECT_THAT(refusal(with("qwen2.rope.freq_base", std::nanf(""))).first, HasSubstr("freq_base"));
  EXPECT_THAT(refusal(with("qwen2.context_length", 0)).first, HasSubstr("context_length is 0"));
  EXPECT_THAT(refusal(with("tokenizer.ggml.eos_token_id", 4000000000U)).first, HasSubstr("eos_token_id"));
}

TEST_F(GgufConfig, WhatIsNotSupportedIsRefusedWithASentence) {
  const auto kind_and_words = [&](const GgufBuilder& builder, const char* words) {
    const auto [message, kind] = refusal(builder);
    EXPECT_EQ(kind, ErrorKind::unsupported) << message;
    EXPECT_THAT(message, HasSubstr(words));
  };
  kind_and_words(small_gguf("gemma"), "qwen2, qwen3 and llama are supported");
  kind_and_words(small_gguf("qwen3moe"), "mixture-of-experts models");
  kind_and_words(small_gguf("llama").u32("llama.expert_count", 8), "mixture-of-experts models");
  kind_and_words(small_gguf("llama").u32("llama.rope.dimension_count", 4), "rope.dimension_count is 4");
  kind_and_words(small_gguf("llama").f32("llama.logit_scale", 0.5f), "llama.logit_scale");
  kind_and_words(small_gguf("llama").f32("llama.final_logit_softcapping", 30.0f), "softcapping");
  kind_and_words(small_gguf("llama").raw("llama.attention.causal", 7, std::string(1, '\0')), "causal");
  kind_and_words(small_gguf("qwen2").u32("qwen2.attention.sliding_window", 16), "sliding");
  kind_and_words(small_gguf("qwen2").string("qwen2.rope.scaling.type", "longrope"), "none, linear and yarn");
  EXPECT_NO_THROW(read(small_gguf("qwen2").u32("qwen2.attention.sliding_window", 64)));
}

TEST_F(GgufConfig, RopeScalingIsRead) {
  const ModelConfig yarn = read(small_gguf("qwen2")
                                    .string("qwen2.rope.scaling.type", "yarn")
                                    .f32("qwen2.rope.scaling.factor", 4.0f)
                                    .u32("qwen2.rope.scaling.original_context_length", 32));
  EXPECT_EQ(yarn.rope.type, RopeConfig::Type::yarn);
  EXPECT_EQ(yarn.rope.factor, 4.0);
  EXPECT_EQ(yarn.rope.original_max_position, 32.0);
  EXPECT_EQ(yarn.max_position, 128);
  EXPECT_EQ(yarn.rope.attention_factor, std::nullopt);
  EXPECT_EQ(read(small_gguf("llama").f32("llama.rope.scale_linear", 2.0f)).rope.type,
            RopeConfig::Type::linear);
  EXPECT_EQ(read(small_gguf("llama")
                     .string("llama.rope.scaling.type", "linear")
                     .f32("llama.rope.scaling.factor", 2.0f))
                .rope.factor,
            2.0);
  EXPECT_EQ(read(small_gguf("llama").string("llama.rope.scaling.type", "none")).rope.type,
            RopeConfig::Type::standard);
  EXPECT_THAT(refusal(small_gguf("qwen2").string("qwen2.rope.scaling.type", "yarn")).first,
              HasSubstr("factor is missing"));
  EXPECT_THAT(refusal(small_gguf("qwen2")
                          .string("qwen2.rope.scaling.type", "yarn")
                          .f32("qwen2.rope.scaling.factor", 0.0f))
                  .first,
              HasSubstr("factor is 0"));
}

TEST_F(GgufConfig, StoredFrequencyFactorsAreHonoured) {
  EXPECT_THAT(read(small_gguf("llama").f32_tensor("rope_freqs.weight", {4}, 8.0f)).rope.freq_factors,
              testing::Each(8.0f));
  EXPECT_THAT(refusal(small_gguf("llama").f32_tensor("rope_freqs.weight", {3}, 8.0f)).first,
              HasSubstr("rope_freqs.weight"));
  EXPECT_THAT(refusal(small_gguf("llama").f32_tensor("rope_freqs.weight", {4}, 0.0f)).first,
              HasSubstr("rope_freqs.weight"));
}

}  // namespace
}  // namespace qwench
