#include "cli/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

using testing::HasSubstr;

std::filesystem::path data(const std::string& path) { return std::filesystem::path(QWENCH_TEST_DATA) / path; }

/// Broken files and sound controls of every kind, with what each must give.
TEST(InspectCheck, EveryMalformedFileGivesOneSentenceAndEverySoundOneASummary) {
  std::ifstream in(data("malformed/expectations.json"));
  const Json cases = Json::parse(in);
  int agreed = 0;
  for (const Json& row : cases) {
    const std::string file = row["file"];
    const auto start = std::chrono::steady_clock::now();
    std::string outcome = "ok";
    std::string said;
    try {
      const CheckResult result = check_path(data("malformed/" + file));
      said = result.summary;
      if (!result.problems.empty()) outcome = "error";
    } catch (const Error& error) {
      outcome = "error";
      said = error.what();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool agrees = row["expect"] == "either" || row["expect"] == outcome;
    agreed += agrees ? 1 : 0;
    EXPECT_TRUE(agrees) << file << " (" << row["why"] << "): expected " << row["expect"] << ", found "
                        << outcome << ": " << said;
    EXPECT_LT(seconds.count(), 1.0) << file;
    EXPECT_THAT(said, HasSubstr(std::filesystem::path(file).filename().string())) << "the file is named";
    EXPECT_THAT(said, testing::Not(HasSubstr("\n")));
  }
  std::printf("malformed files: %d of %zu cases\n", agreed, cases.size());
  EXPECT_EQ(cases.size(), 98U);
}

TEST(InspectCheck, ASoundModelIsDescribed) {
  const std::string summary = check_path(data("models/qwen3-tiny-sharded-bf16")).summary;
  EXPECT_THAT(summary, HasSubstr("sound; safetensors in 5 files"));
  EXPECT_THAT(summary, HasSubstr("a qwen3 model"));
  EXPECT_THAT(summary, HasSubstr("most of them bf16"));
  EXPECT_THAT(summary, HasSubstr("4 layers"));
}

TEST(InspectCheck, WhatIsNotThereIsAnError) { EXPECT_THROW(check_path("no/such/path"), Error); }

}  // namespace
}  // namespace qwench::cli
