#include "kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/amx.h"
#include "qwench/error.h"

namespace qwench {
namespace {

TEST(Isa, TheBestIsUsedUnlessAnotherIsChosen) {
  const std::vector<std::string> isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(current_isa(), isas.front());
  set_isa(isas.back());
  EXPECT_EQ(current_isa(), isas.back());
  EXPECT_EQ(available_isas(), isas);
  set_isa("");
  EXPECT_EQ(current_isa(), isas.front());
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
TEST(Isa, InstructionsOfTheCpuAreNotLeftUnused) {
  const std::string best = available_isas().front();
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vpopcntdq")) {
    EXPECT_EQ(best, amx_available() ? "amx" : "avx3_dl");
  } else if (__builtin_cpu_supports("avx512bw")) {
    EXPECT_EQ(best, "avx3");
  } else if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(best, "avx2");
  }
}
#endif

TEST(Isa, AnUnknownNameIsAnErrorThatListsWhatThereIs) {
  try {
    set_isa("mmx");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("mmx"), testing::HasSubstr(available_isas().front())));
  }
}

}  // namespace
}  // namespace qwench
