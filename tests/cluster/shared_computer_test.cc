#include "cluster/diagnose/shared_computer.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SharedComputer, IsOnlyOneThatSeveralMachinesAre) {
  EXPECT_THAT(
      shared_computers({{"a", "x", 8, 8}, {"b", "y", 8, 8}, {"c", "", 8, 8}, {"d", "", 8, 8}}),
      IsEmpty());
  const auto shared = shared_computers({{"a", "x", 8, 8}, {"b", "y", 8, 8}, {"c", "x", 8, 9}});
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_THAT(shared[0].machines, ElementsAre(0, 2));
  EXPECT_EQ(shared[0].free_bytes, 9);
}

TEST(FairMemory, DividesWhatIsThereOnce) {
  EXPECT_THAT(memory_per_machine({{"a", "x", 8, 8}, {"b", "y", 6, 6}}), ElementsAre(8, 6));
  EXPECT_THAT(memory_per_machine({{"a", "x", 8, 8}, {"b", "x", 8, 8}, {"c", "y", 6, 6}}),
              ElementsAre(4, 4, 6));
}

TEST(FairMemory, LeavesAloneWhatFits) {
  // Containers, each with its own limit.
  EXPECT_THAT(memory_per_machine({{"a", "x", 3, 8}, {"b", "x", 4, 8}}), ElementsAre(3, 4));
}

TEST(FairMemory, TakesFirstWhatTheClusterFileGrants) {
  EXPECT_THAT(memory_per_machine({{"a", "x", 8, 8, 5}, {"b", "x", 8, 8}, {"c", "x", 8, 8}}),
              ElementsAre(5, 1.5, 1.5));
  const std::vector<FoundMachine> overdrawn = {{"a", "x", 8, 8, 5}, {"b", "x", 8, 8, 5}};
  EXPECT_THAT(memory_per_machine(overdrawn), ElementsAre(5, 5));
  EXPECT_TRUE(shared_computers(overdrawn).front().is_overcommitted());
  EXPECT_THAT(shared_memory_text(shared_computers(overdrawn).front(), overdrawn),
              HasSubstr("a, b are one computer with "));
}

// Two local machines each get the cores that both see.
TEST(CoreSharers, AreAllThatAreStartedHereWithoutAQuota) {
  Cluster cluster;
  cluster.machines.resize(5);
  cluster.machines[0].devices = {"cpu", "cpu"};
  cluster.machines[2].cpu_share = 0.5;
  cluster.machines[3].shell = {"ssh", "box"};
  cluster.machines[4].shell = {"ssh", "desk"};
  cluster.machines[4].devices = {"cuda:0", "cpu", "cuda:1"};
  EXPECT_EQ(core_sharers(cluster, cluster.machines[0]), CoreSharers{.computing = 3});
  EXPECT_EQ(core_sharers(cluster, cluster.machines[1]), CoreSharers{.computing = 3});
  EXPECT_EQ(core_sharers(cluster, cluster.machines[2]), CoreSharers{.computing = 1});
  EXPECT_EQ(core_sharers(cluster, cluster.machines[3]), CoreSharers{.computing = 1});
  EXPECT_EQ(core_sharers(cluster, cluster.machines[4]),
            (CoreSharers{.computing = 1, .serving = 2}));
}

}  // namespace
}  // namespace motley
