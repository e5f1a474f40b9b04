#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/json.h"
#include "golden_model.h"

namespace qwench {
namespace {

TEST(Rope, FrequenciesEqualTheOfficialImplementationForEveryGoldenModel) {
  for (const std::string& name : test::dense_golden_models()) {
    const test::GoldenModel golden(name);
    for (const char* file : {"config.json", "config.v5.json"}) {
      const ModelConfig config =
          ModelConfig::from_json(parse_json(read_text_file(golden.folder() / file), file), file);
      const RopeFrequencies rope(config.rope, config.head_dim);
      const std::vector<float>& want = golden.tensor("rope.inv_freq");
      ASSERT_EQ(rope.inv_freq().size(), want.size()) << name;
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_NEAR(rope.inv_freq()[i] / want[i], 1.0, 3e-7) << name << ", pair " << i;
      }
      EXPECT_NEAR(rope.attention_factor(), golden.json()["rope_attention_scaling"].get<double>(), 1e-6)
          << name;
    }
  }
}

RopeConfig config_of(RopeConfig::Type type) {
  RopeConfig config;
  config.type = type;
  config.theta = 10000.0;
  config.factor = 4.0;
  config.original_max_position = 64;
  return config;
}

struct Angles {
  std::vector<float> cos = std::vector<float>(8);
  std::vector<float> sin = std::vector<float>(8);
};
Angles fill(const RopeConfig& config, int position, int prompt_length) {
  Angles angles;
  RopeFrequencies(config, 16).fill(position, prompt_length, angles.cos, angles.sin);
  return angles;
}

TEST(Rope, LinearScalingDividesPositions) {
  const Angles scaled = fill(config_of(RopeConfig::Type::linear), 40, 64);
  const Angles plain = fill(RopeConfig{}, 10, 64);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(scaled.cos[i], plain.cos[i], 1e-5) << i;
    EXPECT_NEAR(scaled.sin[i], plain.sin[i], 1e-5) << i;
  }
}

TEST(Rope, DynamicScalingStartsPastTheOriginalContext) {
  const RopeConfig dynamic = config_of(RopeConfig::Type::dynamic);
  EXPECT_EQ(fill(dynamic, 63, 64).cos, fill(RopeConfig{}, 63, 64).cos);
  // theta' = theta * (4 * 100 / 64 - 3) ^ (16 / 14), as in the official implementation.
  RopeConfig stretched;
  stretched.theta = 10000.0 * std::pow(4.0 * 100 / 64 - 3.0, 16.0 / 14.0);
  for (const int position : {0, 5, 99}) {
    const Angles got = fill(dynamic, position, 100);
    const Angles want = fill(stretched, position, 100);
    for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(got.cos[i], want.cos[i], 1e-5) << position << ", " << i;
  }
  EXPECT_EQ(fill(dynamic, 99, 10).cos, fill(dynamic, 99, 100).cos)
      << "a generated token goes by its own position";
}

TEST(Rope, YarnFactorMultipliesCosAndSin) {
  RopeConfig config = config_of(RopeConfig::Type::yarn);
  EXPECT_NEAR(fill(config, 0, 1).cos[0], 0.1 * std::log(4.0) + 1.0, 1e-6);
  config.attention_factor = 1.5;
  EXPECT_NEAR(fill(config, 0, 1).cos[0], 1.5, 1e-6);
}

TEST(Rope, FrequencyFactorsDivide) {
  RopeConfig config;
  config.freq_factors.assign(8, 2.0f);
  const RopeFrequencies halved(config, 16);
  const RopeFrequencies plain(RopeConfig{}, 16);
  for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(halved.inv_freq()[i], plain.inv_freq()[i] / 2) << i;
}

}  // namespace
}  // namespace qwench
