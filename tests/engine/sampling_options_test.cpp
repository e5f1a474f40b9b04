#include "engine/sampling_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qwench/error.h"

namespace qwench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

template <typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(SamplingOptions, TheStrongerGoesFirst) {
  const SamplingOptions request{.temperature = 0.1f};
  const SamplingOptions flag{.temperature = 0.2f, .top_k = 5};
  const SamplingOptions file{.temperature = 0.3f, .top_k = 6, .top_p = 0.5f};
  const SamplingParams params = request.over(flag).over(file).resolve();
  EXPECT_EQ(params.temperature, 0.1f);
  EXPECT_EQ(params.top_k, 5);
  EXPECT_EQ(params.top_p, 0.5f);
  EXPECT_EQ(params.min_p, SamplingParams{}.min_p);
}

TEST(SamplingOptions, ASeedIsDrawnWhereTheAnswerIsDrawnAndNoneWasGiven) {
  SamplingOptions drawn{.temperature = 0.5f};
  draw_seed(drawn, {});
  EXPECT_TRUE(drawn.seed.has_value());
  SamplingOptions by_default;
  draw_seed(by_default, {});
  EXPECT_TRUE(by_default.seed.has_value());
  EXPECT_NE(by_default.seed, drawn.seed);  // once in four thousand million runs
  SamplingOptions given{.seed = 7};
  draw_seed(given, {});
  EXPECT_EQ(given.seed, 7U);
  SamplingOptions greedy;
  draw_seed(greedy, {.temperature = 0.0f});
  EXPECT_FALSE(greedy.seed.has_value());
}

TEST(SamplingOptions, ZeroIsAValueAndNotAnOpenSetting) {
  const SamplingOptions request{.temperature = 0.0f, .top_k = 0};
  const SamplingParams params = request.over({.temperature = 0.6f, .top_k = 20}).resolve();
  EXPECT_EQ(params.temperature, 0.0f);
  EXPECT_EQ(params.top_k, 0);
}

TEST(SamplingOptions, RangesAreChecked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const SamplingOptions& bad : std::vector<SamplingOptions>{{.temperature = -0.1f},
                                                                 {.temperature = 101.0f},
                                                                 {.temperature = nan},
                                                                 {.top_k = -1},
                                                                 {.top_p = 0.0f},
                                                                 {.top_p = 1.1f},
                                                                 {.top_p = nan},
                                                                 {.min_p = -0.1f},
                                                                 {.min_p = 1.1f},
                                                                 {.repetition_penalty = 0.0f},
                                                                 {.repetition_penalty = nan},
                                                                 {.presence_penalty = 2.1f},
                                                                 {.frequency_penalty = -2.1f},
                                                                 {.logit_bias = {{{0, 101.0f}}}},
                                                                 {.logit_bias = {{{-1, 1.0f}}}}}) {
    EXPECT_THAT(message_of([&] { bad.resolve(); }), HasSubstr("expected"));
  }
  EXPECT_EQ(message_of([] { SamplingOptions{.top_p = 1.5f}.resolve(); }),
            "top_p is 1.5, expected more than 0 and at most 1");
}

TEST(SamplingFields, AreReadByName) {
  SamplingOptions options;
  const Json fields = Json::parse(R"({"temperature": 1, "top_k": 3, "top_p": 0.5, "min_p": 0.1,
        "repetition_penalty": 1.1, "presence_penalty": 0.2, "frequency_penalty": 0.3, "logit_bias": {"5": -2},
        "seed": 18446744073709551615})");
  for (const auto& [name, value] : fields.items()) {
    EXPECT_TRUE(read_sampling_field(name, value, options)) << name;
  }
  const SamplingParams params = options.resolve();
  EXPECT_EQ(params.temperature, 1.0f);
  EXPECT_EQ(params.top_k, 3);
  EXPECT_EQ(params.frequency_penalty, 0.3f);
  EXPECT_THAT(params.logit_bias, ElementsAre(Pair(5, -2.0f)));
  EXPECT_EQ(params.seed, UINT64_MAX);
  EXPECT_FALSE(read_sampling_field("tempreature", 1, options));
}

TEST(SamplingFields, NullLeavesOpen) {
  SamplingOptions options{.top_k = 3};
  EXPECT_TRUE(read_sampling_field("top_k", nullptr, options));
  EXPECT_FALSE(options.top_k);
}

TEST(SamplingFields, WholeNumbersMayBeWrittenAsFloats) {
  SamplingOptions options;
  EXPECT_TRUE(read_sampling_field("top_k", Json::parse("1e3"), options));
  EXPECT_EQ(options.top_k, 1000);
}

TEST(SamplingFields, WrongTypesAreErrorsThatNameTheField) {
  const std::vector<std::pair<std::string, std::string>> wrong{{"temperature", "\"hot\""},
                                                               {"temperature", "true"},
                                                               {"temperature", "1e300"},
                                                               {"top_k", "1.5"},
                                                               {"top_k", "\"3\""},
                                                               {"top_k", "99999999999"},
                                                               {"top_k", "1e300"},
                                                               {"seed", "-1"},
                                                               {"seed", "1.5"},
                                                               {"logit_bias", "3"},
                                                               {"logit_bias", "[[1]]"},
                                                               {"logit_bias", R"({"x":1})"},
                                                               {"logit_bias", R"({"1":"x"})"}};
  for (const auto& [name, value] : wrong) {
    SamplingOptions options;
    EXPECT_THAT(message_of([&, &name = name, &value = value] {
                  read_sampling_field(name, Json::parse(value), options);
                }),
                HasSubstr(name))
        << value;
  }
}

TEST(StopFields, AreReadByName) {
  StopParams stop;
  const Json fields = Json::parse(R"({"stop": ["a", "b"], "stop_token_ids": [1, 2], "ignore_eos": true,
        "max_tokens": 7, "min_tokens": 2})");
  for (const auto& [name, value] : fields.items()) {
    EXPECT_TRUE(read_stop_field(name, value, stop)) << name;
  }
  EXPECT_THAT(stop.stop, ElementsAre("a", "b"));
  EXPECT_THAT(stop.stop_token_ids, ElementsAre(1, 2));
  EXPECT_TRUE(stop.ignore_eos);
  EXPECT_EQ(stop.max_tokens, 7);
  EXPECT_EQ(stop.min_tokens, 2);
  EXPECT_TRUE(read_stop_field("stop", "one", stop));
  EXPECT_THAT(stop.stop, ElementsAre("one"));
  EXPECT_FALSE(read_stop_field("halt", 1, stop));
  EXPECT_NO_THROW(check(stop));
}

TEST(StopFields, WrongTypesAndRangesAreErrors) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"stop", "1"},
                                                        {"stop", "[1]"},
                                                        {"stop_token_ids", "1"},
                                                        {"ignore_eos", "1"},
                                                        {"max_tokens", "\"9\""}}) {
    StopParams stop;
    EXPECT_THAT(
        message_of([&, &name = name, &value = value] { read_stop_field(name, Json::parse(value), stop); }),
        HasSubstr(name));
  }
  EXPECT_THAT(message_of([] { check(StopParams{.stop = {""}}); }), HasSubstr("stop"));
  EXPECT_THAT(message_of([] { check(StopParams{.stop = std::vector<std::string>(17, "x")}); }),
              HasSubstr("16"));
  EXPECT_THAT(message_of([] { check(StopParams{.max_tokens = -2}); }), HasSubstr("max_tokens"));
  EXPECT_THAT(message_of([] { check(StopParams{.max_tokens = 3, .min_tokens = 4}); }),
              AllOf(HasSubstr("min_tokens"), HasSubstr("max_tokens")));
}

TEST(SamplingParams, PrintAsTheyWereWritten) {
  SamplingParams params = SamplingOptions{.temperature = 0.6f, .top_p = 0.95f, .seed = 42}.resolve();
  EXPECT_EQ(
      to_json(params).dump(),
      R"({"temperature":0.6,"top_k":20,"top_p":0.95,"min_p":0,"repetition_penalty":1,"presence_penalty":0,)"
      R"("frequency_penalty":0,"logit_bias":{},"seed":42})");
  EXPECT_EQ(describe(params), "temperature 0.6, top_k 20, top_p 0.95, seed 42");
  params.temperature = 0;
  EXPECT_EQ(describe(params), "greedy");
}

}  // namespace
}  // namespace qwench
