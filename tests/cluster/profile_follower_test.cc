#include "cluster/diagnose/profile_follower.h"

#include <gmock/gmock.h>

#include "base/json.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

Machine virtual_machine(const std::string& name, double tokens_per_s) {
  Machine machine;
  machine.name = name;
  machine.devices = {"virtual"};
  machine.memory_gib = 4;
  machine.virtual_speed = {.tokens_per_s = tokens_per_s};
  return machine;
}

// A model of two layers on three virtual machines; the first has a worker.
class FollowedProfiles : public testing::Test {
 protected:
  FollowedProfiles() {
    ModelConfig config;
    config.layers = 2;
    config.width = 64;
    config.heads = 4;
    config.context = 64;
    config.vocab = 1000;
    model_ = describe_model(config).value();
    cluster_.machines = {virtual_machine("m0", 30'000), virtual_machine("m1", 10'000),
                         virtual_machine("m2", 60'000)};
    WorkerSpec& worker = workers_.emplace_back();
    worker.name = "profile of m0 (virtual)";
    worker.machine = cluster_.machines[0];
    worker.job.device = "virtual";
    worker.job.virtual_speed = cluster_.machines[0].virtual_speed;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      computed_.push_back({part_of(cluster_.machines[i]), 0});
    }
  }

  DeviceProfile part_of(const Machine& machine) {
    return computed_part(machine, "virtual", model_, train_, {1, 2});
  }

  // The worker's result event.
  Json result() {
    DeviceProfile device = part_of(cluster_.machines[0]);
    device.threads = 1;
    device.baseline_bytes = 1000;
    device.message_s = 3e-6;
    device.shared_s_per_float = 3e-10;
    device.codecs["none"] = {4, 1e-9, 2e-9};
    Profile profile;
    profile.devices = {device};
    return {{"event", "result"}, {"profile", profile_to_json(profile)}, {"kept", false}};
  }

  ModelSpec model_;
  TrainConfig train_;
  Cluster cluster_;
  std::vector<WorkerSpec> workers_;
  std::vector<ComputedDevice> computed_;
  Profile known_;
  MeasureOptions options_{.quiet = true};
  std::string said_;
  Log log_{"", LogLevel::kInfo, [this](std::string_view line) { said_ += line; }};
};

TEST_F(FollowedProfiles, OfVirtualDevicesComeFromOneThatIsStartedAlike) {
  ProfileFollower follower(cluster_, workers_, computed_, "fp32", known_, options_, log_);
  ASSERT_TRUE(follower.on_event(0, result()).ok());
  const auto profile = follower.finish(2);
  ASSERT_TRUE(profile.ok()) << describe(profile.error());
  const DeviceProfile& first = *profile->find("m0", "virtual");
  const std::string layer = first.layers.begin()->first;
  for (const auto& [name, slower] : {std::pair("m1", 3.0), std::pair("m2", 0.5)}) {
    const DeviceProfile* other = profile->find(name, "virtual");
    ASSERT_NE(other, nullptr) << name;
    EXPECT_EQ(other->message_s, 3e-6);
    EXPECT_EQ(other->shared_s_per_float, 3e-10);
    EXPECT_EQ(other->baseline_bytes, 1000);
    EXPECT_EQ(other->codecs.at("none").encode_s_per_float, 1e-9);
    EXPECT_EQ(other->memory_bytes, 4 * kGib);
    ASSERT_EQ(other->layers.size(), first.layers.size());
    EXPECT_NEAR(other->layers.at(layer)[0].forward_s, slower * first.layers.at(layer)[0].forward_s,
                1e-12);
  }
  EXPECT_THAT(said_, HasSubstr("computed 3 virtual devices (2 s)"));
  EXPECT_THAT(said_, Not(HasSubstr("measured")));
}

TEST_F(FollowedProfiles, HaveTheDtypesOfTheClusterFile) {
  cluster_.machines[0].device_model = "titan-x-pascal";
  train_.precision = "bf16";
  computed_ = {{computed_part(cluster_.machines[1], "virtual", model_, train_, {1, 2}), 0},
               {computed_part(cluster_.machines[2], "virtual", model_, train_, {1, 2}), 0}};
  Json sent = result();
  sent["profile"]["devices"][0]["precision"] = "bf16";
  ProfileFollower follower(cluster_, workers_, computed_, "bf16", known_, options_, log_);
  ASSERT_TRUE(follower.on_event(0, sent).ok());
  const auto profile = follower.finish(2);
  ASSERT_TRUE(profile.ok()) << describe(profile.error());
  EXPECT_EQ(profile->find("m0", "virtual")->compute_dtype, "fp32");
  EXPECT_EQ(profile->find("m0", "virtual")->precision, "bf16");
  EXPECT_EQ(profile->find("m1", "virtual")->compute_dtype, "bf16");
  EXPECT_EQ(profile->find("m1", "virtual")->precision, "bf16");
}

TEST_F(FollowedProfiles, CountTheMemoryOfMachinesWithoutAWorker) {
  const Json memory = {
      {"event", "memory"}, {"bytes", 4 * kGib}, {"computer", ""}, {"computer_bytes", 8 * kGib}};
  options_.least_bytes = 12 * kGib;
  ProfileFollower enough(cluster_, workers_, computed_, "fp32", known_, options_, log_);
  EXPECT_TRUE(enough.on_event(0, memory).ok());
  options_.least_bytes = 13 * kGib;
  ProfileFollower less(cluster_, workers_, computed_, "fp32", known_, options_, log_);
  const auto problem = less.on_event(0, memory);
  ASSERT_FALSE(problem.ok());
  EXPECT_THAT(problem.error().cause, HasSubstr("m2 has 4.00 GiB by the cluster file"));
  EXPECT_THAT(problem.error().remedy, HasSubstr("set memory_gib of m0 to at least 5"));
}

TEST(StartedAlike, AreMachinesWhoseWorkersRunOnOneProcessorTheSameWay) {
  const Machine one = virtual_machine("m0", 1);
  Machine other = virtual_machine("m1", 2);
  EXPECT_TRUE(are_started_alike(one, other));
  other.shell = ssh_shell("box");
  EXPECT_FALSE(are_started_alike(one, other));
  other = one;
  other.cpu_share = 0.5;
  EXPECT_FALSE(are_started_alike(one, other));
}

}  // namespace
}  // namespace motley
