// What `qwench verify --reference` says, on references that fit and on ones that were tampered with.
#include "verify/reference_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "qwench/error.h"
#include "verify_files.h"

namespace qwench {
namespace {

using test::GoldenModel;
using testing::HasSubstr;

ReferenceReport check(const std::string& golden, const std::filesystem::path& path, double scale = 1) {
  const Reference reference = Reference::open(path);
  const auto subject = test::subject_of(golden, positions_needed(reference));
  ReferenceTolerances tolerances;
  tolerances.scale = scale;
  return check_reference(*subject, reference, tolerances);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class EveryGolden : public testing::TestWithParam<std::string> {};

TEST_P(EveryGolden, PassesAgainstItsOwnReference) {
  const GoldenModel golden(GetParam());
  const ReferenceReport report = check(GetParam(), golden.folder());
  EXPECT_TRUE(report.ok()) << report.verdict();
  const auto layers = golden.json().at("tensors").size();
  EXPECT_GT(layers, 20U);
  // Embedding, six places inside the first layer, every layer, norm, head, frequencies.
  std::vector<std::string> names;
  int tensors = 0;
  for (const ReferenceRow& row : report.rows) {
    names.push_back(row.name);
    tensors += row.difference.tensors();
    EXPECT_GT(row.difference.cosine(), 0.999999) << row.name;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"rope.inv_freq", "model.embed_tokens", "model.layers.0.q",
                                            "model.layers.0.attn_out", "model.layers.0", "model.layers.2",
                                            "model.norm", "lm_head"}));
  EXPECT_EQ(names.back(), "lm_head");
  EXPECT_EQ(tensors + static_cast<int>(report.not_compared.size()),
            static_cast<int>(golden.json()["tensors"].size()));
  EXPECT_THAT(report.not_compared, testing::Each(HasSubstr("before_rope")));
  ASSERT_TRUE(report.perplexity);
  EXPECT_NEAR(report.perplexity->got, golden.json()["perplexity"]["mean_nll"].get<double>(), 1e-4);
  ASSERT_EQ(report.greedy.size(), 5U);
  for (const GreedyOutcome& outcome : report.greedy) EXPECT_EQ(outcome.equal, 32);
  std::printf("verify --reference: %s: %d tensors\n", GetParam().c_str(), tensors);
}

INSTANTIATE_TEST_SUITE_P(DenseModels, EveryGolden, testing::ValuesIn(test::dense_golden_models()),
                         [](const auto& variant) {
                           std::string name = variant.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(ReferenceCheck, AMovedValueIsFoundWithItsLayerPromptPositionAndElement) {
  const test::ScratchFolder scratch;
  const GoldenModel golden("qwen3-tiny-f32");
  // Row 5 of 64 columns, column 17.
  const ReferenceReport report =
      check("qwen3-tiny-f32", test::changed_reference(scratch, golden, "p4.hidden.2", 5 * 64 + 17, 0.01F));
  EXPECT_FALSE(report.ok());
  ASSERT_NE(report.first_difference(), nullptr);
  EXPECT_EQ(report.first_difference()->name, "model.layers.1");
  const Difference& difference = report.first_difference()->difference;
  EXPECT_EQ(difference.first()->prompt, 4);
  EXPECT_EQ(difference.first()->position, 5);
  EXPECT_EQ(difference.first()->element, 17);
  EXPECT_NEAR(difference.max_abs(), 0.01, 1e-4);
  EXPECT_THAT(report.verdict(), HasSubstr("first at model.layers.1: prompt 4, position 5, element 17"));
  int differing = 0;
  for (const ReferenceRow& row : report.rows) differing += row.difference.ok() ? 0 : 1;
  EXPECT_EQ(differing, 1) << "the other places are as recorded";
}

TEST(ReferenceCheck, AValueThatIsNotFiniteIsADifference) {
  const test::ScratchFolder scratch;
  const GoldenModel golden("qwen3-tiny-f32");
  const ReferenceReport report =
      check("qwen3-tiny-f32", test::changed_reference(scratch, golden, "p0.logits", 3, INFINITY));
  EXPECT_THAT(report.verdict(), HasSubstr("first at lm_head: prompt 0, position 0, element 3"));
}

TEST(ReferenceCheck, AWiderToleranceForgives) {
  const test::ScratchFolder scratch;
  const GoldenModel golden("qwen3-tiny-f32");
  const auto folder = test::changed_reference(scratch, golden, "p1.logits", 3, 1e-3F);
  EXPECT_FALSE(check("qwen3-tiny-f32", folder).ok());
  EXPECT_TRUE(check("qwen3-tiny-f32", folder, 20).ok());
}

TEST(ReferenceCheck, AnotherGreedyTokenCountsUnlessTheReferencesMarginIsATie) {
  const test::ScratchFolder scratch;
  const GoldenModel golden("qwen2-tiny-f16");
  const auto change = [](double margin) {
    return [margin](Json& json) {
      Json& prompt = json["prompts"][2];
      prompt["greedy"][7] = prompt["greedy"][7].get<int>() == 3 ? 4 : 3;
      prompt["greedy_margins"][7] = margin;
    };
  };
  const ReferenceReport wrong =
      check("qwen2-tiny-f16", test::changed_reference(scratch, golden, "", 0, 0, change(0.5)));
  EXPECT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.greedy[2].equal, 7);
  EXPECT_THAT(wrong.verdict(), HasSubstr("greedy token 7 of prompt 2"));
  EXPECT_TRUE(check("qwen2-tiny-f16", test::changed_reference(scratch, golden, "", 0, 0, change(1e-5))).ok());
}

TEST(ReferenceCheck, AnotherPerplexityIsADifference) {
  const test::ScratchFolder scratch;
  const ReferenceReport report = check(
      "llama-tiny", test::changed_reference(scratch, GoldenModel("llama-tiny"), "", 0, 0, [](Json& json) {
        json["perplexity"]["mean_nll"] = json["perplexity"]["mean_nll"].get<double>() + 1e-3;
      }));
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.verdict(), HasSubstr("mean negative log-likelihood"));
}

TEST(ReferenceCheck, WithoutTensorsTokensAndPerplexityAreCompared) {
  const test::ScratchFolder scratch;
  const auto folder = test::changed_reference(scratch, GoldenModel("llama-tiny"), "", 0, 0);
  std::filesystem::remove(folder / "reference.safetensors");
  const ReferenceReport report = check("llama-tiny", folder);
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.rows.empty());
  EXPECT_THAT(report.verdict(), HasSubstr("no tensors recorded, 160 greedy tokens, perplexity"));
}

TEST(ReferenceCheck, TheReferenceOfAnotherModelIsRefused) {
  EXPECT_THAT(message_of([] { check("qwen3-tiny-f32", GoldenModel("qwen2-tiny-f16").folder()); }),
              testing::AnyOf(HasSubstr("another model"), HasSubstr("not in the vocabulary")));
}

TEST(Reference, IsOpenedByItsFolderItsJsonOrItsTensors) {
  const std::filesystem::path folder = GoldenModel("qwen3-tiny-f32").folder();
  for (const char* name : {"", "golden.json", "golden.safetensors"}) {
    const Reference reference = Reference::open(*name == '\0' ? folder : folder / name);
    EXPECT_EQ(reference.prompts().size(), 5U);
    EXPECT_EQ(reference.made_with(), "transformers 5.24.0, torch 2.15.0");
  }
}

TEST(Reference, BrokenFieldsAreNamed) {
  const test::ScratchFolder scratch;
  const GoldenModel golden("qwen3-tiny-f32");
  const auto message = [&](const std::function<void(Json&)>& edit) {
    const auto folder = test::changed_reference(scratch, golden, "", 0, 0, edit);
    return message_of([&] { Reference::open(folder); });
  };
  EXPECT_THAT(message([](Json& j) { j["format"] = 2; }), HasSubstr("format"));
  EXPECT_THAT(message([](Json& j) { j.erase("prompts"); }), HasSubstr("prompts"));
  EXPECT_THAT(message([](Json& j) { j["prompts"] = Json::array(); }), HasSubstr("prompts"));
  EXPECT_THAT(message([](Json& j) { j["prompts"][1]["ids"] = "x"; }), HasSubstr("prompts[1]"));
  EXPECT_THAT(message([](Json& j) { j["prompts"][1]["greedy_margins"] = {1}; }), HasSubstr("greedy_margins"));
  EXPECT_THAT(message([](Json& j) { j["perplexity"]["nll"][0] = "x"; }), HasSubstr("nll"));
  EXPECT_THAT(message([](Json& j) { j["timings"] = {{"prompt", 9}}; }), HasSubstr("prompt"));
  EXPECT_THAT(message([](Json& j) {
                j["timings"] = {{"prompt", 0}, {"new_tokens", 4}};
              }),
              HasSubstr("prefill_seconds"));
  EXPECT_THAT(message_of([] { Reference::open(QWENCH_TEST_DATA "/chat"); }), HasSubstr("reference.json"));
}

}  // namespace
}  // namespace qwench
