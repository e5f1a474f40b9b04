#include "hub/file_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace qwench::hub {
namespace {

TEST(FileLock, OneHoldsItAtATime) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("file_lock_" + std::to_string(::getpid()));
  const std::filesystem::path path = folder / "deep" / "x.lock";
  {
    auto first = FileLock::try_acquire(path);
    ASSERT_TRUE(first);
    EXPECT_FALSE(FileLock::try_acquire(path));
    std::filesystem::remove(path);  // a new file, a new lock
    EXPECT_TRUE(FileLock::try_acquire(path));
  }
  EXPECT_TRUE(FileLock::try_acquire(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace qwench::hub
