#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "inspect/listing.h"
#include "inspect/model_card.h"
#include "inspect/model_diff.h"
#include "inspect/structure.h"
#include "inspect/tensor_stats.h"

namespace qwench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::filesystem::path model(const std::string& name) {
  return std::filesystem::path(QWENCH_TEST_DATA) / "models" / name;
}

/// A .safetensors file with one F32 tensor of these numbers.
std::filesystem::path one_tensor(const std::string& file, const std::vector<float>& values) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / file;
  const size_t bytes = values.size() * sizeof(float);
  std::string header = R"({"x":{"dtype":"F32","shape":[)" + std::to_string(values.size()) +
                       R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream out(path, std::ios::binary);
  const uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof(length));
  out << header;
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
  return path;
}

TEST(Listing, TensorsStandInTheOrderOfTheModelWithTheirPlaces) {
  const Listing listing = Listing::open(model("qwen3-tiny-sharded-bf16"));
  EXPECT_EQ(listing.files().size(), 5U);
  EXPECT_EQ(listing.tensors().front().name, "model.embed_tokens.weight");
  uint64_t total = 0;
  int layer = 0;
  for (const ListedTensor& tensor : listing.tensors()) {
    total += tensor.bytes.size();
    if (const auto n = tensor.layer()) {
      EXPECT_GE(*n, layer) << tensor.name;
      layer = *n;
    }
    std::ifstream file(listing.files()[tensor.file].path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(tensor.offset));
    std::vector<char> bytes(tensor.bytes.size());
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(std::memcmp(bytes.data(), tensor.bytes.data(), bytes.size()), 0) << tensor.name;
  }
  EXPECT_LT(total, listing.bytes());
}

TEST(ModelCard, CountsParametersOnce) {
  const Listing tied = Listing::open(model("qwen3-tiny-tied-with-head"));
  const ModelCard card = model_card(tied);
  EXPECT_TRUE(card.tied);
  EXPECT_NE(tied.find("lm_head.weight"), nullptr);
  EXPECT_EQ(card.head_parameters, 0);
  int64_t all = 0;
  for (const ListedTensor& tensor : tied.tensors()) all += tensor.count();
  EXPECT_EQ(card.parameters, all - card.embedding_parameters);
  EXPECT_EQ(card.active_parameters, card.parameters);
  EXPECT_TRUE(card.not_run.empty()) << card.not_run;
}

TEST(ConfigFields, DefaultsAreMarked) {
  const Listing listing = Listing::open(model("qwen2-tiny-f16"));
  const std::vector<ConfigField> fields = config_fields(listing, model_card(listing));
  EXPECT_THAT(fields, Contains(testing::AllOf(Field(&ConfigField::name, "hidden_size"),
                                              Field(&ConfigField::origin, ConfigField::Origin::file))));
  EXPECT_THAT(fields, Contains(testing::AllOf(Field(&ConfigField::name, "rope_type"),
                                              Field(&ConfigField::value, Json("default")),
                                              Field(&ConfigField::origin, ConfigField::Origin::assumed))));
  EXPECT_THAT(fields, Contains(testing::AllOf(Field(&ConfigField::name, "dtype"),
                                              Field(&ConfigField::source, "torch_dtype"))));
  EXPECT_THAT(unused_fields(listing, model_card(listing)), Contains("initializer_range"));
}

TEST(Structure, EqualLayersAreFolded) {
  const Listing listing = Listing::open(model("qwen3-tiny-bf16-tied"));
  const std::string drawn = draw(module_tree(listing), model_card(listing));
  EXPECT_THAT(drawn, HasSubstr("layers.0–3 ×4"));
  EXPECT_THAT(drawn, HasSubstr("q_proj                 96 → 128 BF16"));
  EXPECT_THAT(drawn, HasSubstr("the head is the embedding"));
  int64_t parameters = module_tree(listing).parameters;
  EXPECT_EQ(parameters, model_card(listing).parameters);
}

TEST(TensorStats, AreThoseOfThePlainDefinitions) {
  std::vector<float> values(200'003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) * 0.25f - 100.0f;
  values[7] = std::numeric_limits<float>::quiet_NaN();
  values[70'000] = std::numeric_limits<float>::infinity();
  values[150'000] = -std::numeric_limits<float>::infinity();
  const Listing listing = Listing::open(one_tensor("stats.safetensors", values));
  double sum = 0;
  double squares = 0;
  int64_t zeros = 0;
  int64_t finite = 0;
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    sum += v;
    ++finite;
    zeros += v == 0 ? 1 : 0;
  }
  const double mean = sum / static_cast<double>(finite);
  for (const float v : values) squares += std::isfinite(v) ? (v - mean) * (v - mean) : 0;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto stats = tensor_stats(listing.tensors(), pool);
    ASSERT_EQ(stats.size(), 1U);
    ASSERT_TRUE(stats[0]);
    EXPECT_EQ(stats[0]->min, -100.0f);
    EXPECT_EQ(stats[0]->max, 149.75f);
    EXPECT_NEAR(stats[0]->mean, mean, 1e-9);
    EXPECT_NEAR(stats[0]->std, std::sqrt(squares / static_cast<double>(finite)), 1e-9);
    EXPECT_EQ(stats[0]->zeros, zeros);
    EXPECT_EQ(stats[0]->nan, 1);
    EXPECT_EQ(stats[0]->inf, 2);
    EXPECT_EQ(stats[0]->count, 200'003);
  }
}

TEST(ModelDiff, AModelEqualsItself) {
  ThreadPool pool(2);
  const Listing a = Listing::open(model("qwen3-tiny-f32"));
  const ModelDiff diff = diff_models(a, a, pool);
  EXPECT_TRUE(diff.equal());
  EXPECT_EQ(diff.equal_tensors, a.tensors().size());
}

TEST(ModelDiff, DifferencesAreNamed) {
  ThreadPool pool(2);
  const Listing a = Listing::open(one_tensor("a.safetensors", {1.0f, 2.0f, 3.0f}));
  const Listing b = Listing::open(one_tensor("b.safetensors", {1.0f, 2.5f, 3.0f}));
  const Listing c = Listing::open(one_tensor("c.safetensors", {1.0f, 2.0f}));
  const auto what = [&](const Listing& left, const Listing& right) {
    std::vector<std::string> out;
    for (const auto& tensor : diff_models(left, right, pool).tensors) out.push_back(tensor.what);
    return out;
  };
  EXPECT_THAT(what(a, b), ElementsAre("values differ by up to 0.5"));
  EXPECT_THAT(what(a, c), ElementsAre("shape [3] and [2]"));
  EXPECT_THAT(what(a, a), IsEmpty());
  const ModelDiff models =
      diff_models(Listing::open(model("qwen3-tiny-f32")), Listing::open(model("llama-tiny")), pool);
  EXPECT_THAT(models.fields, Contains(Field(&ModelDiff::Field::name, "model_type")));
}

}  // namespace
}  // namespace qwench
