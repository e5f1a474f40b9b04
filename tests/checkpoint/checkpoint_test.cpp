#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "checkpoint/expected_tensors.h"
#include "checkpoint/quantization_name.h"
#include "checkpoint/test_files.h"

namespace qwench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The smallest checkpoint, as named tensors of F32 zeros that a test may change before it writes them.
class CheckpointFolder : public testing::Test {
 protected:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
  };
  using Tensors = std::vector<std::pair<std::string, Tensor>>;

  CheckpointFolder() { set_family("qwen2"); }

  void set_family(const std::string& family) {
    config_ = Json::parse(
        R"({"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 10, "max_position_embeddings": 32, "tie_word_embeddings": true})");
    config_["model_type"] = family;
    tensors_.clear();
    for (const ExpectedTensor& t : expected_tensors(ModelConfig::from_json(config_, ""))) {
      if (!t.optional) tensors_.emplace_back(t.name, Tensor{"F32", t.shape});
    }
  }

  static std::string file_of(const Tensors& tensors, const std::string& padding = {}) {
    Json header = Json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      int64_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "I64" ? 8 : 2;
      for (const int64_t d : tensor.shape) bytes *= d;
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + static_cast<size_t>(bytes)}}};
      data.append(static_cast<size_t>(bytes), static_cast<char>('a' + data.size() % 26));
    }
    return safetensors_file(header.dump() + padding, data);
  }

  void add(const std::string& name, std::vector<int64_t> shape, const std::string& dtype = "F32") {
    tensors_.emplace_back(name, Tensor{dtype, std::move(shape)});
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const auto& t) { return t.first == name; });
  }
  std::filesystem::path write(const std::string& name, std::string_view content) {
    return folder_.write(name, content);
  }
  std::filesystem::path path() const { return folder_.path(); }

  std::shared_ptr<const Checkpoint> open() {
    write("config.json", config_.dump());
    if (write_model_) write("model.safetensors", file_of(tensors_));
    return Checkpoint::open(folder_.path());
  }
  std::pair<std::string, ErrorKind> refusal() {
    return error_of([&] { check_tensors(*open()); });
  }

  Json config_;
  Tensors tensors_;
  bool write_model_ = true;

 private:
  TemporaryFolder folder_;
};

TEST(Checkpoint, EveryDenseTinyModelHasExactlyItsTensors) {
  int passed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_data("models"))) {
    if (!entry.is_directory() || entry.path().filename().string().find("moe") != std::string::npos) continue;
    // The goldens are no part of the model, and a folder with model.safetensors or an index does not look at
    // them.
    SCOPED_TRACE(entry.path().filename().string());
    const auto checkpoint = Checkpoint::open(entry.path());
    EXPECT_NO_THROW(check_tensors(*checkpoint));
    EXPECT_EQ(checkpoint->format(), "safetensors");
    EXPECT_EQ(checkpoint->stop_token_ids().size(), 2U);
    EXPECT_EQ(checkpoint->generation().sampling.top_k, 20);
    ++passed;
  }
  std::printf("tiny checkpoints: %d of 10\n", passed);
  EXPECT_EQ(passed, 10);
}

TEST(Checkpoint, ShardsAreFoundByTheIndex) {
  const auto checkpoint = Checkpoint::open(test_data("models/qwen3-tiny-sharded-bf16"));
  EXPECT_EQ(checkpoint->files().size(), 5U);
  const TensorView* q = checkpoint->find("model.layers.3.self_attn.q_proj.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->dtype, DType::bf16);
  EXPECT_THAT(q->shape, ElementsAre(128, 64));
  EXPECT_EQ(q->bytes.size(), 128U * 64 * 2);
  EXPECT_EQ(checkpoint->find("model.layers.4.self_attn.q_proj.weight"), nullptr);
}

TEST(Checkpoint, AGgufFileHasTheSameNamesAndShapesAsTheFolder) {
  const auto gguf = Checkpoint::open(test_data("malformed/gguf/ok.gguf"));
  const auto folder = Checkpoint::open(test_data("malformed/checkpoint/ok"));
  EXPECT_EQ(gguf->format(), "gguf v3");
  EXPECT_EQ(gguf->tensors().size(), folder->tensors().size());
  for (const TensorView& tensor : folder->tensors()) {
    const TensorView* other = gguf->find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
  }
  EXPECT_THAT(gguf->stop_token_ids(), ElementsAre(257));
}

TEST(Checkpoint, TheWayItsWeightsAreStoredHasLlamaCppsName) {
  EXPECT_EQ(quantization_name(*Checkpoint::open(test_data("models/qwen3-tiny-sharded-bf16"))), "BF16");
}

TEST_F(CheckpointFolder, TheWayAGgufFilesWeightsAreStoredIsWhatItSaysOrWhatMostAre) {
  const auto named = [&](GgufBuilder gguf) {
    write("m.gguf", gguf.build());
    return quantization_name(*Checkpoint::open(path()));
  };
  EXPECT_EQ(named(small_gguf("qwen2")), "F32") << "nothing is said";
  EXPECT_EQ(named(small_gguf("qwen2").u32("general.file_type", 15)), "Q4_K_M");
  EXPECT_EQ(named(small_gguf("qwen2").u32("general.file_type", 9999)), "F32") << "not known";
  EXPECT_EQ(named(small_gguf("qwen2").string("general.file_type", "x")), "F32") << "no number";
}

TEST(Checkpoint, ALoneSafetensorsFileGivesTensorsOnly) {
  const auto checkpoint = Checkpoint::open(test_data("malformed/safetensors/ok.safetensors"));
  EXPECT_EQ(checkpoint->tensors().size(), 2U);
  EXPECT_FALSE(checkpoint->has_config());
  EXPECT_EQ(error_of([&] { checkpoint->config(); }).second, ErrorKind::not_found);
}

TEST(Checkpoint, WhatIsNotThereIsNamed) {
  const auto [message, kind] = error_of([] { Checkpoint::open("no/such/model"); });
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, HasSubstr("no/such/model"));
}

TEST_F(CheckpointFolder, NamesMayLackTheModelPrefix) {
  for (auto& [name, tensor] : tensors_) {
    if (name.starts_with("model.")) name = name.substr(6);
  }
  const auto checkpoint = open();
  EXPECT_NO_THROW(check_tensors(*checkpoint));
  EXPECT_NE(checkpoint->find("model.layers.0.mlp.up_proj.weight"), nullptr);
  EXPECT_NE(checkpoint->find("model.norm.weight"), nullptr);
  add("model.norm.weight", {8});
  EXPECT_THAT(refusal().first, HasSubstr("\"model.norm.weight\" is there twice"));
}

TEST_F(CheckpointFolder, SeveralFilesWithoutAnIndexAreOneModel) {
  const Tensors first(tensors_.begin(), tensors_.begin() + 4);
  const Tensors rest(tensors_.begin() + 4, tensors_.end());
  write("model-00001-of-00002.safetensors", file_of(first));
  write("model-00002-of-00002.safetensors", file_of(rest));
  write_model_ = false;
  EXPECT_NO_THROW(check_tensors(*open()));
  write("extra.safetensors", file_of(Tensors(first.begin(), first.begin() + 1)));
  EXPECT_THAT(refusal().first, HasSubstr("is there twice"));
}

TEST_F(CheckpointFolder, AMissingShardIsNamedWithoutAnIndexToo) {
  write("model-00002-of-00003.safetensors", file_of(tensors_));
  write("model-00003-of-00003.safetensors", file_of({}));
  write_model_ = false;
  const auto [message, kind] = refusal();
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, HasSubstr("shard 1 of 3 is not there"));
}

TEST_F(CheckpointFolder, AnIndexDoesNotLeadOutOfTheFolder) {
  write_model_ = false;
  for (const char* file : {"../model.safetensors", "/model.safetensors", "sub/model.safetensors",
                           "..\\\\model.safetensors", "..", "", "a\\u0000.safetensors", "config.json"}) {
    SCOPED_TRACE(file);
    write("model.safetensors.index.json",
          R"({"weight_map": {"model.norm.weight": ")" + std::string(file) + "\"}}");
    EXPECT_THAT(refusal().first, HasSubstr("expected the name of a .safetensors file in the same folder"));
  }
}

TEST_F(CheckpointFolder, AnIndexsNameThatNoFileCanHaveIsRefused) {
  write_model_ = false;
  const std::string name = std::string(300, 'a') + ".safetensors";
  write("model.safetensors.index.json", R"({"weight_map": {"model.norm.weight": ")" + name + "\"}}");
  EXPECT_THAT(refusal().first, HasSubstr(name + ": File name too long"));
}

TEST_F(CheckpointFolder, ABrokenIndexIsRefused) {
  write_model_ = false;
  write("m.safetensors", file_of(tensors_));
  for (const char* index :
       {"", "[]", "{}", R"({"weight_map": null})", R"({"weight_map": {}})", R"({"weight_map": {"a": 1}})",
        R"({"weight_map": "m.safetensors"})", R"({"weight_map": {"no.such.tensor": "m.safetensors"}})",
        R"({"weight_map": {"a": "m.safetensors", "a": "m.safetensors"}})"}) {
    SCOPED_TRACE(index);
    write("model.safetensors.index.json", index);
    EXPECT_EQ(refusal().second, ErrorKind::malformed);
  }
}

TEST_F(CheckpointFolder, WeightsInPicklesAreRefusedWithAdvice) {
  write_model_ = false;
  write("pytorch_model.bin", "PK");
  const auto [message, kind] = refusal();
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("convert them to safetensors"));
}

TEST_F(CheckpointFolder, AFolderMayHoldOneGgufModel) {
  const std::string gguf = small_gguf("qwen2").build();
  write("a.gguf", gguf);
  EXPECT_EQ(Checkpoint::open(path())->format(), "gguf v3");
  write("b.gguf", gguf);
  EXPECT_THAT(error_of([&] { Checkpoint::open(path()); }).first, HasSubstr("name one of them"));
}

TEST_F(CheckpointFolder, AConfigBesideAGgufModelDoesNotHideIt) {
  write("m.gguf", small_gguf("qwen2").build());
  write_model_ = false;
  EXPECT_EQ(open()->format(), "gguf v3");
  write_model_ = true;
  EXPECT_EQ(open()->format(), "safetensors");
}

TEST_F(CheckpointFolder, AnEmptyFolderSaysWhatIsMissing) {
  EXPECT_THAT(error_of([&] { Checkpoint::open(path()); }).first, HasSubstr("no *.safetensors and no *.gguf"));
}

TEST_F(CheckpointFolder, AMissingTensorIsNamed) {
  remove("model.layers.0.post_attention_layernorm.weight");
  const auto [message, kind] = refusal();
  EXPECT_EQ(kind, ErrorKind::malformed);
  EXPECT_THAT(message, HasSubstr("\"model.layers.0.post_attention_layernorm.weight\" is missing"));
}

TEST_F(CheckpointFolder, AnUnusedTensorIsNamed) {
  for (const char* name :
       {"model.layers.1.input_layernorm.weight", "model.layers.0.self_attn.q_norm.weight", "score.weight",
        "model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.mlp.up_proj.bias", "lm_head.bias",
        "model.layers.00.mlp.up_proj.weight"}) {
    SCOPED_TRACE(name);
    add(name, {8});
    EXPECT_THAT(refusal().first, HasSubstr(std::string("\"") + name + "\" is in the file"));
    remove(name);
  }
}

TEST_F(CheckpointFolder, RedundantTensorsAreIgnored) {
  add("lm_head.weight", {10, 8});
  add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  add("model.layers.0.self_attn.bias", {1}, "I64");
  EXPECT_NO_THROW(check_tensors(*open()));
}

TEST_F(CheckpointFolder, BiasesOfAttentionCountByPresence) {
  add("model.layers.0.self_attn.q_proj.bias", {8});
  add("model.layers.0.self_attn.k_proj.bias", {4});
  add("model.layers.0.self_attn.v_proj.bias", {4});
  add("model.layers.0.self_attn.o_proj.bias", {8});
  EXPECT_NO_THROW(check_tensors(*open()));
  remove("model.layers.0.self_attn.k_proj.bias");
  add("model.layers.0.self_attn.k_proj.bias", {8});
  EXPECT_THAT(refusal().first, HasSubstr("has the shape [8], but the config asks for [4]"));
}

TEST_F(CheckpointFolder, ABiasThatOnlySomeHaveIsRefused) {
  add("model.layers.0.self_attn.q_proj.bias", {8});
  add("model.layers.0.self_attn.v_proj.bias", {4});
  EXPECT_THAT(refusal().first, HasSubstr("\"model.layers.0.self_attn.k_proj.bias\" is missing"));
}

TEST_F(CheckpointFolder, PromisedBiasesMustBeThere) {
  set_family("llama");
  config_["attention_bias"] = true;
  EXPECT_THAT(refusal().first, HasSubstr("\"model.layers.0.self_attn.q_proj.bias\" is missing"));
}

TEST_F(CheckpointFolder, AHeadThatIsMissingIsTheEmbeddingForQwen2Only) {
  config_["tie_word_embeddings"] = false;
  testing::internal::CaptureStderr();
  const auto checkpoint = open();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the embedding is used as the head"));
  EXPECT_NO_THROW(check_tensors(*checkpoint));
  EXPECT_TRUE(checkpoint->config().tie_word_embeddings);
  for (const char* family : {"qwen3", "llama"}) {
    set_family(family);
    config_["tie_word_embeddings"] = false;
    EXPECT_THAT(refusal().first, HasSubstr("\"lm_head.weight\" is missing"));
    add("lm_head.weight", {10, 8});
    EXPECT_NO_THROW(check_tensors(*open()));
  }
}

TEST_F(CheckpointFolder, AWeightOfAnotherTypeIsNamed) {
  remove("model.layers.0.mlp.up_proj.weight");
  add("model.layers.0.mlp.up_proj.weight", {12, 8}, "I64");
  const auto [message, kind] = refusal();
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_THAT(
      message,
      HasSubstr("\"model.layers.0.mlp.up_proj.weight\" is of type I64; F32, F16 and BF16 can be read"));
}

TEST_F(CheckpointFolder, TensorsAtOddAddressesAreAligned) {
  write_model_ = false;
  for (const char* padding : {"", " ", "  ", "   "}) {
    // What follows an odd count of two bytes is not aligned for F32.
    tensors_.insert(tensors_.begin(), {"model.odd.rotary_emb.inv_freq", {"BF16", {1}}});
    write("model.safetensors", file_of(tensors_, padding));
    const auto checkpoint = open();
    EXPECT_NO_THROW(check_tensors(*checkpoint));
    for (const TensorView& tensor : checkpoint->tensors()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) %
                    static_cast<size_t>(traits(tensor.dtype).block_bytes),
                0U)
          << tensor.name;
      EXPECT_EQ(tensor.bytes.front(), tensor.bytes.back());
      EXPECT_EQ(tensor.bytes.size(), bytes_of(tensor.dtype, static_cast<uint64_t>(tensor.count())));
    }
    tensors_.erase(tensors_.begin());
  }
}

TEST_F(CheckpointFolder, TheStopSetIsAUnion) {
  config_["eos_token_id"] = 3;
  write("generation_config.json", R"({"eos_token_id": [7, 3, 1]})");
  EXPECT_THAT(open()->stop_token_ids(), ElementsAre(1, 3, 7));
  write("generation_config.json", R"({"eos_token_id": "x"})");
  EXPECT_THAT(refusal().first, HasSubstr("generation_config.json: `eos_token_id`"));
}

/// A llama GGUF of one layer with all its tensors.
GgufBuilder whole_gguf(uint32_t up_type = 0) {
  GgufBuilder builder = small_gguf("llama");
  builder.f32_tensor("token_embd.weight", {32, 16})
      .f32_tensor("output_norm.weight", {16})
      .f32_tensor("output.weight", {32, 16});
  builder.f32_tensor("blk.0.attn_norm.weight", {16})
      .f32_tensor("blk.0.attn_q.weight", {16, 16})
      .f32_tensor("blk.0.attn_k.weight", {8, 16});
  builder.f32_tensor("blk.0.attn_v.weight", {8, 16})
      .f32_tensor("blk.0.attn_output.weight", {16, 16})
      .f32_tensor("blk.0.ffn_norm.weight", {16});
  builder.f32_tensor("blk.0.ffn_gate.weight", {24, 16}).f32_tensor("blk.0.ffn_down.weight", {16, 24});
  return builder.tensor("blk.0.ffn_up.weight", {24, 16}, up_type,
                        std::string(up_type == 0 ? 24 * 16 * 4 : 24 * 16, '\0'));
}

TEST_F(CheckpointFolder, GgufTensorsAreCheckedUnderBothNames) {
  const auto refusal_of = [&](const GgufBuilder& builder) {
    return error_of([&] { check_tensors(*Checkpoint::open(write("m.gguf", builder.build()))); }).first;
  };
  EXPECT_NO_THROW(check_tensors(
      *Checkpoint::open(write("m.gguf", whole_gguf().f32_tensor("rope_freqs.weight", {4}, 1.0f).build()))));
  EXPECT_THAT(
      refusal_of(whole_gguf(24)),
      HasSubstr("\"blk.0.ffn_up.weight\" (model.layers.0.mlp.up_proj.weight) is of type I8; F32, F16"));
  EXPECT_THAT(refusal_of(whole_gguf().f32_tensor("blk.0.ffn_up.bias", {24})),
              HasSubstr("\"blk.0.ffn_up.bias\""));
  EXPECT_THAT(refusal_of(whole_gguf().f32_tensor("blk.1.ffn_up.weight", {24, 16})),
              HasSubstr("\"blk.1.ffn_up.weight\""));
  EXPECT_THAT(refusal_of(whole_gguf().f32_tensor("rope_factors_long.weight", {4})),
              HasSubstr("\"rope_factors_long.weight\""));
}

}  // namespace
}  // namespace qwench
