// Expansion of "auto" in a machine's devices.
#include "cluster/diagnose/automatic_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Names = std::vector<std::string>;

TEST(AutomaticDevices, AreTheAcceleratorsElseTheProcessor) {
  EXPECT_THAT(automatic_devices(Names{"cpu", "cuda:0", "cuda:1"}, 1),
              ElementsAre("cuda:0", "cuda:1"));
  EXPECT_THAT(automatic_devices(Names{"cpu"}, 1), ElementsAre("cpu"));
}

TEST(AutomaticDevices, AreProcessesOfTheProcessorWhereMoreAreAskedForThanThereAreAccelerators) {
  EXPECT_THAT(automatic_devices(Names{"cpu"}, 3), ElementsAre("cpu", "cpu", "cpu"));
  EXPECT_THAT(automatic_devices(Names{"cpu", "cuda:0"}, 2), ElementsAre("cpu", "cpu"));
  EXPECT_THAT(automatic_devices(Names{"cpu", "cuda:0", "cuda:1"}, 2),
              ElementsAre("cuda:0", "cuda:1"));
}

TEST(AutomaticDevices, LeaveOutWhatNothingRunsOn) {
  DevicesFound found;
  found.devices = {{.name = "cpu"},
                   {.name = "cuda:0", .fault = {"too old", "a newer card"}},
                   {.name = "cuda:1"}};
  EXPECT_THAT(automatic_devices(found, 1), ElementsAre("cuda:1"));
  found.devices.pop_back();
  EXPECT_THAT(automatic_devices(found, 1), ElementsAre("cpu"));
}

class AutomaticCluster : public testing::Test {
 protected:
  AutomaticCluster() {
    for (const char* name : {"desk", "box"}) {
      Machine& machine = cluster_.machines.emplace_back();
      machine.name = name;
      machine.devices = {kAutomaticDevice};
    }
  }

  Machine& desk() { return cluster_.machines[0]; }

  Machine& box() { return cluster_.machines[1]; }

  static DeviceProfile profile_of(const char* machine, const char* device) {
    DeviceProfile profile;
    profile.machine = machine;
    profile.device = device;
    return profile;
  }

  Cluster cluster_;
};

TEST_F(AutomaticCluster, TakesWhatAProfileNames) {
  Profile profile;
  profile.devices = {profile_of("box", "cuda:0"), profile_of("box", "cpu"),
                     profile_of("other", "mps")};
  desk().devices = {"cpu", "cpu"};  // named explicitly
  settle_by_profile(cluster_, profile);
  EXPECT_THAT(desk().devices, ElementsAre("cpu", "cpu"));
  EXPECT_THAT(box().devices, ElementsAre("cuda:0"));
  EXPECT_TRUE(check_settled(cluster_).ok());
}

TEST_F(AutomaticCluster, IsNotSettledWhereNoProfileIsOfAMachine) {
  Profile profile;
  profile.devices = {profile_of("desk", "cpu")};
  settle_by_profile(cluster_, profile);
  const auto checked = check_settled(cluster_);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::kConfig);
  EXPECT_THAT(checked.error().what, HasSubstr("box"));
  EXPECT_THAT(checked.error().remedy, HasSubstr("motley profile"));
}

TEST_F(AutomaticCluster, TakesWhatAPlanUses) {
  Plan plan;
  plan.ranks = {{.machine = "desk", .device = "cuda:1"}, {.machine = "desk", .device = "cpu"}};
  settle_by_plan(cluster_, plan);
  EXPECT_THAT(desk().devices, ElementsAre("cuda:1", "cpu"));
  EXPECT_THAT(box().devices, ElementsAre("cpu"));
}

TEST_F(AutomaticCluster, MayHaveEnoughForEveryStageBeforeItIsAsked) {
  box().devices = {"cpu"};
  const Cluster any = with_any_devices(cluster_, 3);
  EXPECT_EQ(any.machines[0].devices.size(), 3U);
  EXPECT_THAT(any.machines[1].devices, ElementsAre("cpu"));
  EXPECT_EQ(with_any_devices(cluster_, 0).machines[0].devices.size(), 1U);
}

}  // namespace
}  // namespace motley
