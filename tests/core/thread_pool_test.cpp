#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

namespace qwench {
namespace {

TEST(ThreadPool, EveryElementIsVisitedOnceWhateverTheGrain) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 64, 1001}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_EQ(begin % grain, 0);
          EXPECT_LT(worker, pool.size());
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        for (const auto& visit : visits) EXPECT_EQ(visit, 1);
      }
    }
  }
}

TEST(ThreadPool, CallsFollowEachOtherWithoutLossAfterSleep) {
  ThreadPool pool(3);
  std::atomic<int> sum{0};
  for (int i = 0; i < 2000; ++i) {
    pool.run([&](int worker, int) { sum += worker; });
    if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(sum, 2000 * 3);
}

TEST(ThreadCount, MoreThanTheCoresAreCutWithAWarning) {
  EXPECT_EQ(thread_count(0), available_cores());
  EXPECT_EQ(thread_count(1), 1);
  EXPECT_EQ(thread_count(8), 8);
  testing::internal::CaptureStderr();
  const int count = thread_count(100000);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count, std::max(8, available_cores()));
  EXPECT_NE(warning.find("100000"), std::string::npos) << warning;
  EXPECT_NE(warning.find(std::to_string(available_cores())), std::string::npos) << warning;
}

TEST(ThreadPool, KnowsHowManyCoresThisProcessMayUse) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace qwench
