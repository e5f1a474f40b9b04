#include "verify/speedometer.h"

#include <gtest/gtest.h>

#include "verify_files.h"

namespace qwench {
namespace {

TEST(Speedometer, MeasuresPromptsAndGenerationAtAnyDepth) {
  const std::vector<SpeedCase> cases{{1, 40, 0, 1}, {1, 40, 100, 1}, {3, 1, 0, 4}, {3, 1, 100, 4}};
  const auto checkpoint = Checkpoint::open(test::GoldenModel("qwen3-tiny-f32").folder());
  Subject subject(checkpoint, Speedometer::room_for({}, cases));
  Speedometer speed(subject);
  for (const SpeedCase& test : cases) {
    speed.prepare(test);
    EXPECT_GT(speed.seconds(test), 0);
  }
}

// A tied model: 2 layers' matrices and the head for each token; keys and values of two layers.
TEST(Speedometer, CountsWhatACaseReadsAndComputes) {
  const auto checkpoint = Checkpoint::open(test::GoldenModel("qwen3-tiny-f32").folder());
  Subject subject(checkpoint, Speedometer::room_for({}, {{2, 1, 10, 3}}));
  const Speedometer speed(subject);
  const ModelConfig& model = subject.config();
  const WeightTotals weights = totals(subject.decoder().weights());
  const Weight& head = subject.decoder().weights().head();
  const double head_macs = static_cast<double>(head.rows * head.cols);
  const double cell = 2.0 * 4 * model.num_kv_heads * model.head_dim * model.num_layers;

  const SpeedWork decode = speed.work({2, 1, 10, 3});  // contexts of 11, 12 and 13, of two sequences
  EXPECT_DOUBLE_EQ(decode.bytes, 3.0 * static_cast<double>(weights.bytes_per_token) + 2 * 36 * cell);
  const double attention = 4.0 * model.num_heads * model.head_dim * model.num_layers;
  const SpeedWork one = speed.work({1, 1, 10, 1});
  const SpeedWork deeper = speed.work({1, 1, 11, 1});
  EXPECT_DOUBLE_EQ(deeper.operations - one.operations, attention);
  const SpeedWork prompt = speed.work({1, 5, 0, 1});  // its head is computed for the last row alone
  const SpeedWork first = speed.work({1, 1, 0, 1});
  EXPECT_DOUBLE_EQ(prompt.operations,
                   5 * (first.operations - attention - 2 * head_macs) + 15 * attention + 2 * head_macs);
}

}  // namespace
}  // namespace qwench
