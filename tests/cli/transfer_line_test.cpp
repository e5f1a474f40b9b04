#include "cli/transfer_line.h"

#include <gtest/gtest.h>

namespace qwench::cli {
namespace {

TEST(TransferLine, ShowsShareSpeedAndTimeLeft) {
  TransferLine line;
  EXPECT_EQ(line.text(0, 100'000'000, 0), "0 bytes of 100.0 MB, 0 %");
  EXPECT_EQ(line.text(10'000'000, 100'000'000, 1), "10.0 MB of 100.0 MB, 10 %, 10.0 MB/s, 0:09 left");
}

TEST(TransferLine, TheSpeedIsThatOfTheLastSeconds) {
  TransferLine line;
  line.text(0, 1000, 0);
  line.text(900, 1000, 1);
  for (int second = 2; second < 20; ++second) line.text(900, 1000, second);
  EXPECT_EQ(line.text(900, 1000, 20), "900 bytes of 1.0 kB, 90 %, 0 bytes/s");
}

TEST(TransferLine, AFileThatIsBegunAnewDoesNotMakeTheSpeedNegative) {
  TransferLine line;
  line.text(900, 1000, 0);
  EXPECT_EQ(line.text(0, 1000, 1), "0 bytes of 1.0 kB, 0 %");
}

TEST(TransferLine, DurationsAreShort) {
  EXPECT_EQ(duration(0), "0:00");
  EXPECT_EQ(duration(61.2), "1:02");
  EXPECT_EQ(duration(3 * 3600 + 5), "3:00:05");
  EXPECT_EQ(duration(1e30), "1000:00:00");
}

}  // namespace
}  // namespace qwench::cli
