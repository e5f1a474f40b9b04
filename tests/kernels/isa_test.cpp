#include "kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
