#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "cli/model_flags.h"
#include "cli/sampling_flags.h"
#include "cli/text_source.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

SamplingFlags parse(const Arguments& arguments) {
  CommandLine line("test", "", "");
  SamplingFlags flags;
  flags.add_to(line);
  EXPECT_TRUE(line.parse(arguments));
  flags.finish();
  return flags;
}

TEST(SamplingFlags, FamiliarNamesAreKnown) {
  const SamplingFlags flags = parse({"--temp",
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
  const SamplingFlags flags = parse({});
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
    EXPECT_THROW(parse(arguments), UsageError) << arguments[0];
  }
  for (const Arguments& arguments : std::vector<Arguments>{
           {"--temp", "-1"}, {"--top-p", "0"}, {"--stop", ""}, {"--temp", "nan"}, {"-n", "-2"}}) {
    EXPECT_THROW(parse(arguments), Error) << arguments[0];
  }
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
  EXPECT_THROW(parse_model({"/", "--dtype", "q4_0"}), UsageError);
  EXPECT_THROW(parse_model({"/", "-t", "-1"}), UsageError);
  EXPECT_THROW(parse_model({"/", "a", "-p", "b"}).text.read(false), UsageError);
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
}

}  // namespace
}  // namespace qwench::cli
