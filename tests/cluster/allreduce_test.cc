#include "cluster/diagnose/allreduce.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

Cluster three_machines() {
  Cluster cluster;
  cluster.network.bandwidth_bytes_per_s = 100;
  for (const char* name : {"a", "b", "c"}) {
    Machine machine;
    machine.name = name;
    cluster.machines.push_back(machine);
  }
  return cluster;
}

TEST(AllreduceBound, IsTheTimeOfTheBusiestMachine) {
  EXPECT_DOUBLE_EQ(allreduce_bound_s(three_machines(), {200, 500, 300}), 5);
}

TEST(AllreduceBound, CountsTheSlowerDirectionOfAMachinesFastestLinks) {
  Cluster cluster = three_machines();
  cluster.links = {{"a", "b", {50, 0}}, {"b", "a", {25, 0}}, {"c", "a", {20, 0}}};
  // a sends 100 bytes/s to c and receives 25 from b.
  EXPECT_DOUBLE_EQ(allreduce_bound_s(cluster, {200, 200, 200}), 8);
}

TEST(AllreduceBound, IsNothingWhereNothingLeaves) {
  EXPECT_EQ(allreduce_bound_s(local_cluster(2), {0}), 0);
}

TEST(MeasureAllreduces, RefusesWhatCannotBeMeasuredBeforeAnythingStarts) {
  const Log log("");
  AllreduceOptions options;
  options.codecs = {"none"};
  const auto alone = measure_allreduces(local_cluster(1), options, "/no/such/program", log);
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.error().code, ErrorCode::kConfig);
  options.codecs = {"none", "magic"};
  const auto magic = measure_allreduces(local_cluster(2), options, "/no/such/program", log);
  ASSERT_FALSE(magic.ok());
  EXPECT_NE(magic.error().what.find("magic"), std::string::npos) << describe(magic.error());
}

}  // namespace
}  // namespace motley
