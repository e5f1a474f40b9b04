#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "checkpoint/checkpoint.h"
#include "checkpoint/expected_tensors.h"
#include "checkpoint/test_files.h"

namespace qwench {
namespace {

/// Broken files and sound controls, with what each must give. The tokenizer cases are the text layer's.
TEST(Malformed, EveryFileGivesWhatIsExpectedOfIt) {
  const Json cases = read_json(test_data("malformed/expectations.json"));
  int checked = 0;
  int agreed = 0;
  for (const Json& row : cases) {
    const std::string kind = row["kind"];
    if (kind == "tokenizer") continue;
    ++checked;
    const std::string file = row["file"];
    const auto start = std::chrono::steady_clock::now();
    std::string outcome = "ok";
    std::string message;
    try {
      const auto checkpoint = Checkpoint::open(test_data("malformed/" + file));
      if (checkpoint->has_config()) check_tensors(*checkpoint);
    } catch (const Error& error) {
      outcome = "error";
      message = error.what();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool agrees = row["expect"] == "either" || row["expect"] == outcome;
    agreed += agrees ? 1 : 0;
    EXPECT_TRUE(agrees) << file << " (" << row["why"] << "): expected " << row["expect"] << ", found "
                        << outcome << " " << message;
    EXPECT_LT(seconds.count(), 1.0) << file;
    if (outcome == "error") {
      std::printf("  %s\n", message.c_str());
      EXPECT_THAT(message, testing::HasSubstr(std::filesystem::path(file).filename().string()))
          << "the error names the file";
      EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n")));
    }
  }
  std::printf("malformed files: %d of %d cases\n", agreed, checked);
  EXPECT_EQ(checked, 79);
}

}  // namespace
}  // namespace qwench
