#include "cli/report/planned_cluster.h"

#include <gtest/gtest.h>

#include "plan/units.h"
#include "tests/plan/value_fixtures.h"

namespace motley {
namespace {

RunPrediction predicted(double bytes_per_s) {
  RunPrediction prediction;
  prediction.plan_hash = plan_hash_text(two_stages());
  prediction.ranks.resize(2);
  prediction.links = {{Rank{0}, Rank{1}, 1000, bytes_per_s}};
  return prediction;
}

TEST(PlannedCluster, HasThePlansMachinesAndTheirLinks) {
  const Cluster cluster = planned_cluster(two_stages(), {});
  ASSERT_EQ(cluster.machines.size(), 2U);
  EXPECT_EQ(cluster.machines[1].devices, std::vector<std::string>{"cuda:0"});
  EXPECT_EQ(cluster.link("fast", "slow").bandwidth_bytes_per_s, 940 * kBytesPerMegabit);
  EXPECT_EQ(cluster.link("slow", "fast").bandwidth_bytes_per_s, 80 * kBytesPerMegabit);
}

TEST(PlannedCluster, TakesThePredictionsLinksWhereItHasThem) {
  const Cluster cluster = planned_cluster(two_stages(), predicted(5e6));
  EXPECT_EQ(cluster.link("fast", "slow").bandwidth_bytes_per_s, 5e6);
  EXPECT_EQ(cluster.link("slow", "fast").bandwidth_bytes_per_s, 80 * kBytesPerMegabit);
}

TEST(PlannedCluster, ASpeedThatIsNotKnownIsNone) {
  const Cluster cluster = planned_cluster(two_stages(), predicted(0));
  EXPECT_EQ(cluster.link("fast", "slow").bandwidth_bytes_per_s, 940 * kBytesPerMegabit);
}

TEST(PlannedCluster, RanksOfAMachineAreItsDevices) {
  Plan plan = two_stages();
  plan.ranks[1].machine = "fast";
  const Cluster cluster = planned_cluster(plan, predicted(5e6));
  ASSERT_EQ(cluster.machines.size(), 1U);
  EXPECT_EQ(cluster.machines[0].devices, (std::vector<std::string>{"cpu", "cuda:0"}));
  EXPECT_TRUE(cluster.links.empty());
}

}  // namespace
}  // namespace motley
