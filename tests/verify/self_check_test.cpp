// What `qwench verify` says without a reference.
#include "verify/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/isa.h"
#include "verify_files.h"

namespace qwench {
namespace {

class SelfCheck : public testing::TestWithParam<std::string> {};

TEST_P(SelfCheck, EveryPromiseHoldsOnEveryInstructionSet) {
  const std::string before = current_isa();
  SelfCheckOptions options;
  options.threads = 2;
  options.seed = 7;
  const SelfCheckReport report =
      check_self(Checkpoint::open(test::GoldenModel(GetParam()).folder()), options);
  EXPECT_TRUE(report.ok()) << report.verdict();
  EXPECT_EQ(report.tokens, 96);
  std::set<std::string> isas;
  size_t bitwise = 0;
  for (const SelfCheckLine& line : report.lines) {
    isas.insert(line.isa);
    bitwise += line.tolerance == 0 ? 1 : 0;
    EXPECT_GT(line.rows, 0) << line.what;
    if (line.tolerance == 0) {
      EXPECT_EQ(line.max_abs, 0) << line.isa << ", " << line.what;
    }
  }
  EXPECT_EQ(isas.size(), available_isas().size());
  EXPECT_GE(bitwise, 8 * isas.size()) << "seven ways, and another number of threads";
  EXPECT_EQ(bitwise % isas.size(), 0U);
  EXPECT_GE(report.precision.size(), 3U);
  for (const PrecisionLine& line : report.precision) {
    ASSERT_TRUE(line.divergence) << line.what << ": " << line.note;
    EXPECT_EQ(line.divergence->positions, 96);
    // Weights are converted exactly where they are used; tiles add up in another order.
    if (line.what.find("as stored") != std::string::npos) {
      EXPECT_LE(line.divergence->max, current_isa() == "amx" ? 1e-9 : 0.0) << line.what;
    }
  }
  EXPECT_EQ(current_isa(), before);
}

INSTANTIATE_TEST_SUITE_P(Models, SelfCheck,
                         testing::Values("qwen3-tiny-f32", "qwen2-tiny-window", "qwen2-tiny-f16"),
                         [](const auto& variant) {
                           std::string name = variant.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(SelfCheckSize, TwoTokensAreEnough) {
  SelfCheckOptions options;
  options.tokens = 2;
  EXPECT_TRUE(check_self(Checkpoint::open(test::GoldenModel("llama-tiny").folder()), options).ok());
}

}  // namespace
}  // namespace qwench
