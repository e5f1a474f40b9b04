#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "cli/command_line.h"
#include "cli/model_flags.h"
#include "cli/sampling_flags.h"
#include "cli/text_source.h"
#include "core/log.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

SamplingFlags parse_sampling(const Arguments& arguments) {
  CommandLine line("test", "", "");
  SamplingFlags flags;
  flags.add_to(line);
  EXPECT_TRUE(line.parse(arguments));
  flags.finish();
  return flags;
}

TEST(SamplingFlags, FamiliarNamesAreKnown) {
  const SamplingFlags flags = parse_sampling({"--temp",
                                              "0.5",
                                              "--top-k",
                                              "7",
                                              "--top-p",
                                              "0.9",
                                              "--min-p",
                                              "0.1",
                                              "-s",
                                              "42",
                                              "-n",
                                              "9",
                                              "--stop",
                                              "a",
                                              "--stop",
                                              "b c",
                                              "--logit-bias",
                                              "5=-1.5",
                                              "--stop-token-ids",
                                              "1,2",
                                              "--ignore-eos",
                                              "--repetition-penalty",
                                              "1.1",
                                              "--presence-penalty",
                                              "-1",
                                              "--frequency-penalty",
                                              "0.5"});
  EXPECT_EQ(flags.sampling().temperature, 0.5f);
  EXPECT_EQ(flags.sampling().top_k, 7);
  EXPECT_EQ(flags.sampling().presence_penalty, -1.0f);
  EXPECT_EQ(flags.sampling().seed, 42U);
  EXPECT_THAT(*flags.sampling().logit_bias, ElementsAre(Pair(5, -1.5f)));
  EXPECT_EQ(flags.stop().max_tokens, 9);
  EXPECT_THAT(flags.stop().stop, ElementsAre("a", "b c"));
  EXPECT_THAT(flags.stop().stop_token_ids, ElementsAre(1, 2));
  EXPECT_TRUE(flags.stop().ignore_eos);
}

TEST(SamplingFlags, WhatIsNotGivenStaysOpen) {
  const SamplingFlags flags = parse_sampling({});
  EXPECT_FALSE(flags.sampling().temperature);
  EXPECT_FALSE(flags.sampling().logit_bias);
  EXPECT_FALSE(flags.sampling().seed);
}

TEST(SamplingFlags, WrongValuesAreRefusedBeforeAModelIsLoaded) {
  for (const Arguments& arguments : std::vector<Arguments>{{"--temp", "hot"},
                                                           {"--top-k", "1.5"},
                                                           {"-n", "99999999999999999999"},
                                                           {"-s", "-1"},
                                                           {"-n", "010"},
                                                           {"-n", "0x10"},
                                                           {"-n", "-"},
                                                           {"--logit-bias", "x=1"},
                                                           {"--logit-bias", "1"},
                                                           {"--fly"},
                                                           {"-n"},
                                                           {"--temp", "1", "--temp", "2"}}) {
    EXPECT_THROW(parse_sampling(arguments), UsageError) << arguments[0];
  }
  for (const Arguments& arguments : std::vector<Arguments>{
           {"--temp", "-1"}, {"--top-p", "0"}, {"--stop", ""}, {"--temp", "nan"}, {"-n", "-2"}}) {
    EXPECT_THROW(parse_sampling(arguments), Error) << arguments[0];
  }
}

std::string usage_error_of(const Arguments& arguments) {
  try {
    parse_sampling(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CommandLine, AMisspeltOptionIsNamedWithTheOneThatIsMeant) {
  EXPECT_THAT(usage_error_of({"--temprature", "0.5"}),
              StartsWith("there is no option '--temprature'; did you mean --temperature? See"));
  EXPECT_THAT(usage_error_of({"--temprature=0.5"}), HasSubstr("'--temprature'; did you mean --temperature?"));
  EXPECT_THAT(usage_error_of({"-temp", "0.5"}),
              StartsWith("there is no option '-temp'; did you mean --temp?"));
  EXPECT_THAT(usage_error_of({"--fly"}), StartsWith("there is no option '--fly'; see: qwench test --help"));
  const std::string two = usage_error_of({"--fly", "--sede", "1"});
  EXPECT_LT(two.find("--fly"), two.find("--sede")) << two;
  EXPECT_THAT(two, HasSubstr("did you mean --seed?"));
}

TEST(CommandLine, WordsThatNothingTakesAreListedInTheirOrder) {
  EXPECT_THAT(usage_error_of({"one", "two"}), StartsWith("more arguments than this command takes: one two;"));
}

TEST(CommandLine, WholeNumbersSayFromWhere) {
  EXPECT_THAT(usage_error_of({"--min-tokens", "-1"}),
              HasSubstr("--min-tokens: expected a whole number from 0, found -1"));
  EXPECT_THAT(usage_error_of({"-n", "x"}), HasSubstr("expected a whole number, found x"));
}

struct ModelAndText {
  ModelFlags model;
  TextSource text;
};

ModelAndText parse_model(const Arguments& arguments) {
  CommandLine line("test", "", "");
  ModelAndText parsed;
  parsed.model.add_to(line, ModelFlags::Default::none, true);
  parsed.text.add_to(line, "PROMPT", "");
  EXPECT_TRUE(line.parse(arguments));
  parsed.model.finish(&parsed.text);
  return parsed;
}

TEST(ModelFlags, TheFirstPositionalIsTheModel) {
  const ModelAndText parsed = parse_model({"/", "hello"});
  EXPECT_EQ(parsed.model.path(), "/");
  EXPECT_EQ(parsed.text.read(false), "hello");
}

TEST(ModelFlags, WithTheFlagThePositionalIsThePrompt) {
  const ModelAndText parsed = parse_model({"-m", "/", "hello"});
  EXPECT_EQ(parsed.model.path(), "/");
  EXPECT_EQ(parsed.text.read(false), "hello");
  EXPECT_EQ(parse_model({"-m", "/", "-p", "hello"}).text.read(false), "hello");
}

TEST(ModelFlags, ContradictionsAreUsageErrors) {
  EXPECT_THROW(parse_model({"-m", "/", "/tmp", "hello"}), UsageError);
  EXPECT_THROW(parse_model({}), UsageError);
  EXPECT_THROW(parse_model({"/", "--dtype", "int3"}), UsageError);
  EXPECT_THROW(parse_model({"/", "--dtype", "q5_k"}), UsageError);
  EXPECT_THROW(parse_model({"/", "-t", "-1"}), UsageError);
  EXPECT_THROW(parse_model({"/", "a", "-p", "b"}).text.read(false), UsageError);
}

TEST(ModelFlags, Bf16pIsBf16Packed) {
  const ModelAndText parsed = parse_model({"/", "--dtype", "bf16p"});
  EXPECT_EQ(parsed.model.options().dtype, DType::bf16);
  EXPECT_TRUE(parsed.model.options().packed_bf16);
  EXPECT_FALSE(parse_model({"/", "--dtype", "bf16"}).model.options().packed_bf16);
}

TEST(ModelFlags, AMissingModelIsNamed) {
  try {
    parse_model({"/nowhere/model"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/model"));
  }
}

std::string model_error_of(const Arguments& arguments) {
  try {
    parse_model(arguments).text.read_some(false);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(ModelFlags, ATextInThePlaceOfTheModelIsSeen) {
  EXPECT_THAT(model_error_of({"Why is the sky blue?"}), HasSubstr("the first argument names the model"));
  EXPECT_THAT(model_error_of({"Hello"}), HasSubstr("the first argument names the model"));
  for (const Arguments& path : std::vector<Arguments>{{"/nowhere/model"},
                                                      {"model.gguf"},
                                                      {"Hello", "there"},
                                                      {"Hello", "-p", "there"},
                                                      {"-m", "Hello"}}) {
    EXPECT_THAT(model_error_of(path), Not(HasSubstr("the first argument"))) << path[0];
  }
}

TEST(ModelFlags, AnEmptyNameIsNoDefault) { EXPECT_THAT(model_error_of({"", "hello"}), HasSubstr("empty")); }

TEST(ModelFlags, ATextWithoutQuotesIsSeen) {
  EXPECT_THAT(model_error_of({"/", "Why", "is", "it"}),
              StartsWith("the text is one argument; put it in quotes"));
  EXPECT_THAT(model_error_of({"-m", "/", "Why", "not"}), HasSubstr("put the text in quotes"));
}

TEST(TextSource, AnEmptyTextIsRefusedWhereItSaysNothing) {
  EXPECT_THAT(model_error_of({"/", ""}), HasSubstr("the argument is empty"));
  EXPECT_THAT(model_error_of({"/", "-p", ""}), HasSubstr("the argument is empty"));
  const std::string file = testing::TempDir() + "/qwench-empty.txt";
  std::ofstream(file).close();
  EXPECT_THAT(model_error_of({"/", "-f", file}), HasSubstr(file + " is empty"));
  std::remove(file.c_str());
  EXPECT_EQ(model_error_of({"/", " "}), "no error");
}

TEST(TextSource, BytesThatAreNotUtf8AreReplacedWithOneWarning) {
  set_log_level(LogLevel::warning);
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse_model({"/", "a\xFF\xFEz"}).text.read(false), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warned, HasSubstr("UTF-8"));
  EXPECT_EQ(std::count(warned.begin(), warned.end(), '\n'), 1) << warned;
  testing::internal::CaptureStderr();
  parse_model({"/", "\xC3\xA9"}).text.read(false);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(TextSource, TextIsTakenAsItIs) {
  EXPECT_EQ(parse_model({"/", "a\\nb"}).text.read(false), "a\\nb");
  EXPECT_EQ(parse_model({"/", "{}"}).text.read(false), "{}");
  EXPECT_EQ(parse_model({"/", "chat"}).text.read(false), "chat");
  EXPECT_EQ(parse_model({"/", ""}).text.positional(), "");
  EXPECT_EQ(parse_model({"/", "--", "-x"}).text.read(false), "-x");
  EXPECT_EQ(parse_model({"/", "bad \xFF"}).text.read(false), "bad \xEF\xBF\xBD");
}

TEST(Numbers, AreShort) {
  EXPECT_EQ(short_number(596049920), "596 M");
  EXPECT_EQ(short_number(7615616512), "7.6 B");
  EXPECT_EQ(short_bytes(1.5e9), "1.5 GB");
  EXPECT_EQ(short_bytes(93e6), "93 MB");
  EXPECT_EQ(plural(1, "token"), "1 token");
  EXPECT_EQ(plural(0, "token"), "0 tokens");
}

}  // namespace
}  // namespace qwench::cli
