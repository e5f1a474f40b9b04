#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "core/json.h"
#include "core/mapped_file.h"
#include "engine/sampler.h"
#include "engine/sampling_options.h"

namespace qwench {
namespace {

constexpr double kTolerance = 1e-5;
constexpr int kCases = 72;

/// The case's settings over "nothing set" as the goldens mean it: everything off.
SamplingParams params_of(const Json& fields) {
  SamplingOptions options{.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 0};
  for (const auto& [name, value] : fields.items()) {
    EXPECT_TRUE(read_sampling_field(name, value, options)) << name;
  }
  return options.resolve();
}

/// Empty when the distribution is the expected one, else what differs.
std::string difference(const Json& test) {
  auto logits = test["logits"].get<std::vector<float>>();
  const auto prompt = test["prompt_ids"].get<std::vector<TokenId>>();
  auto vocabulary =
      std::make_shared<SamplerVocabulary>(SamplerVocabulary{static_cast<int>(logits.size()), {}});
  Sampler sampler(params_of(test["params"]), vocabulary, prompt);
  for (const Json& id : test["output_ids"]) sampler.accept(id.get<TokenId>());
  SamplerScratch scratch;
  std::map<TokenId, double> expected;
  if (test.contains("greedy")) {
    expected[test["greedy"].get<TokenId>()] = 1.0;
  } else {
    for (size_t i = 0; i < test["kept"].size(); ++i) {
      expected[test["kept"][i].get<TokenId>()] = test["probs"][i].get<double>();
    }
  }
  std::map<TokenId, double> got;
  for (const Candidate& c : sampler.distribution(logits, scratch)) got[c.id] = c.probability;
  for (const auto& [id, probability] : expected) {
    const double found = got.contains(id) ? got[id] : 0.0;
    if (!(std::abs(found - probability) <= kTolerance)) {
      return "token " + std::to_string(id) + ": " + std::to_string(found) + ", expected " +
             std::to_string(probability);
    }
    if (probability > 1e-12 && !got.contains(id)) return "token " + std::to_string(id) + " is not kept";
  }
  for (const auto& [id, probability] : got) {
    if (!expected.contains(id))
      return "token " + std::to_string(id) + " is kept with " + std::to_string(probability);
  }
  return "";
}

TEST(SamplingGoldens, EveryDistributionIsEqual) {
  const Json goldens = parse_json(read_text_file(QWENCH_TEST_DATA "/sampling.json"), "sampling.json");
  int passed = 0;
  for (const Json& test : goldens["cases"]) {
    const std::string different = difference(test);
    EXPECT_EQ(different, "") << test["name"];
    passed += different.empty() ? 1 : 0;
  }
  std::printf("sampling goldens: %d of %zu cases\n", passed, goldens["cases"].size());
  EXPECT_EQ(passed, kCases);
  EXPECT_EQ(goldens["cases"].size(), static_cast<size_t>(kCases));
}

}  // namespace
}  // namespace qwench
