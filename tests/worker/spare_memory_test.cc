#include "worker/train/spare_memory.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(SpareMemory, IsWhatThePlanLeavesOfWhatIsFree) {
  EXPECT_EQ(spare_within_plan(/*free_bytes=*/500, /*planned_bytes=*/1000, /*resident_bytes=*/900),
            100U);
  EXPECT_EQ(spare_within_plan(50, 1000, 900), 50U);
}

// A process may exceed its plan, and the memory left may be negative.
TEST(SpareMemory, IsNoneWhereNothingIsLeft) {
  EXPECT_EQ(spare_within_plan(500, 1000, 1001), 0U);
  EXPECT_EQ(spare_within_plan(-1, 1000, 900), 0U);
}

TEST(SpareMemory, IsAllThatIsFreeWhereThePlanDoesNotSay) {
  EXPECT_EQ(spare_within_plan(500, 0, 900), 500U);
}

}  // namespace
}  // namespace motley
