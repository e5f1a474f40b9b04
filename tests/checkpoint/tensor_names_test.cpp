#include "checkpoint/tensor_names.h"

#include <gtest/gtest.h>

namespace qwench {
namespace {

TEST(TensorNames, TheModelPrefixIsAddedWhereItIsLeftOut) {
  EXPECT_EQ(canonical_name("layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(canonical_name("embed_tokens.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(canonical_name("norm.weight"), "model.norm.weight");
  EXPECT_EQ(canonical_name("model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(canonical_name("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(canonical_name("normalizer.weight"), "normalizer.weight");
}

TEST(TensorNames, GgufNamesGoBothWays) {
  for (const auto& [gguf, canonical] : std::initializer_list<std::pair<const char*, const char*>>{
           {"token_embd.weight", "model.embed_tokens.weight"},
           {"output_norm.weight", "model.norm.weight"},
           {"output.weight", "lm_head.weight"},
           {"blk.12.attn_norm.weight", "model.layers.12.input_layernorm.weight"},
           {"blk.12.attn_q.weight", "model.layers.12.self_attn.q_proj.weight"},
           {"blk.12.attn_k.bias", "model.layers.12.self_attn.k_proj.bias"},
           {"blk.12.attn_v.weight", "model.layers.12.self_attn.v_proj.weight"},
           {"blk.12.attn_output.weight", "model.layers.12.self_attn.o_proj.weight"},
           {"blk.12.attn_q_norm.weight", "model.layers.12.self_attn.q_norm.weight"},
           {"blk.12.attn_k_norm.weight", "model.layers.12.self_attn.k_norm.weight"},
           {"blk.12.ffn_norm.weight", "model.layers.12.post_attention_layernorm.weight"},
           {"blk.12.ffn_gate.weight", "model.layers.12.mlp.gate_proj.weight"},
           {"blk.12.ffn_up.weight", "model.layers.12.mlp.up_proj.weight"},
           {"blk.12.ffn_down.weight", "model.layers.12.mlp.down_proj.weight"}}) {
    EXPECT_EQ(canonical_gguf_name(gguf), canonical);
    EXPECT_EQ(gguf_name(canonical), gguf);
  }
}

TEST(TensorNames, UnknownNamesStayAsTheyAre) {
  for (const char* name :
       {"", "blk.", "blk.0", "blk.0.", "blk.0.unknown.weight", "rope_freqs.weight", "output", "a.weight"}) {
    EXPECT_EQ(canonical_gguf_name(name), name);
    EXPECT_EQ(gguf_name(name), "");
  }
}

}  // namespace
}  // namespace qwench
