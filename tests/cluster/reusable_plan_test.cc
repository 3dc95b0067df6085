#include "cluster/supervisor/reusable_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A rank on each of the machines.
Plan plan_on(const std::vector<std::string>& machines) {
  Plan plan;
  for (const std::string& machine : machines) plan.ranks.push_back({.machine = machine});
  return plan;
}

class ReusablePlan : public testing::Test {
 protected:
  // The machines of the plan for a launch without `without`; nothing without such a plan.
  std::vector<std::string> reused(const Plan& last,
                                  const std::vector<std::string>& left_out,
                                  const std::vector<std::string>& without) const {
    const auto plan = plan_to_reuse(first_, last, left_out, without);
    std::vector<std::string> machines;
    if (plan) {
      for (const RankPlan& rank : plan->ranks) machines.push_back(rank.machine);
    }
    return machines;
  }

  Plan first_ = plan_on({"a", "b", "c"});
  Plan without_c_ = plan_on({"a", "b"});
};

TEST_F(ReusablePlan, IsTheFirstOneWhileAllItsMachinesAreThere) {
  EXPECT_THAT(reused(first_, {}, {}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(reused(first_, {}, {"d"}), ElementsAre("a", "b", "c"));
}

TEST_F(ReusablePlan, IsTheFirstOneAgainOnceItsMachineIsBack) {
  EXPECT_THAT(reused(without_c_, {"c"}, {}), ElementsAre("a", "b", "c"));
}

TEST_F(ReusablePlan, IsTheLastOneWhileTheSameMachineIsAway) {
  EXPECT_THAT(reused(without_c_, {"c"}, {"c"}), ElementsAre("a", "b"));
}

TEST_F(ReusablePlan, DoesNotExistForAMachineThatBothUse) {
  EXPECT_THAT(reused(first_, {}, {"c"}), IsEmpty());
  EXPECT_THAT(reused(without_c_, {"c"}, {"b", "c"}), IsEmpty());
}

// With "c" back there may be a better plan than the one made without it, though "a" is away.
TEST_F(ReusablePlan, DoesNotExistOnceAMachineIsBackThatTheLastOneLacks) {
  EXPECT_THAT(reused(plan_on({"b"}), {"a", "c"}, {"a"}), IsEmpty());
}

}  // namespace
}  // namespace motley
