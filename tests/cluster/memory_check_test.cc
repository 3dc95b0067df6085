#include "cluster/diagnose/memory_check.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kMib = 1 << 20;
constexpr double kGib = 1 << 30;

TEST(MemoryTrouble, IsNoneWhereAllTogetherHoldTheModel) {
  EXPECT_FALSE(memory_problem({{"desk", kGib, kGib}, {"box (cuda:0)", kGib, kGib}}, 2 * kGib));
}

TEST(MemoryTrouble, SaysWhatEachHasAndByHowMuchItIsShort) {
  const auto error =
      memory_problem({{"desk", kGib, kGib}, {"box (cuda:0)", kGib / 2, kGib / 2}}, 2 * kGib);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kInfeasible);
  EXPECT_THAT(error->what, HasSubstr("1.50 GiB of memory, 512.0 MiB too little"));
  EXPECT_THAT(error->cause, HasSubstr("desk has 1.00 GiB; box (cuda:0) has 512.0 MiB"));
  EXPECT_THAT(error->remedy, Not(HasSubstr("memory_gib")));
}

TEST(MemoryTrouble, NamesTheLimitThatAPersonHasSet) {
  const auto error = memory_problem({{"vm", kMib, 22 * kGib, true}}, 49.7 * kMib);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->cause,
              HasSubstr("vm has 1.0 MiB by memory_gib in the cluster file, with 22.00 GiB free"));
  EXPECT_THAT(error->remedy, HasSubstr("set memory_gib of vm to at least 0.0486, or leave it out"));
}

// The memory of a hypothetical machine is set by the cluster file.
TEST(MemoryTrouble, NamesTheAmountThatAnImaginedMachineNeeds) {
  const auto error =
      memory_problem({{"card", kGib / 2, kGib / 2, true, /*is_measured=*/false}}, 2 * kGib);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->cause, HasSubstr("card has 512.0 MiB by the cluster file"));
  EXPECT_THAT(error->cause, Not(HasSubstr("free")));
  EXPECT_THAT(error->remedy, HasSubstr("set memory_gib of card to at least 2"));
}

TEST(MemoryTrouble, ALimitThatWouldNotBeEnoughIsNoRemedy) {
  const auto error = memory_problem({{"vm", kMib, 2 * kMib, true}}, kGib);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->remedy, Not(HasSubstr("memory_gib")));
}

}  // namespace
}  // namespace motley
