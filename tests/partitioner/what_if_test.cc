#include "partitioner/report/what_if.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/report/plan_comparison.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PlanningInput three_machines() {
  Problem problem;
  problem.layers.assign(12, {.work_s = 0.1, .output_floats = 100, .saved_bytes = 1000});
  problem.machines = {{1}, {0.5}, {0.25}};
  problem.link = {1e6, 0.001};
  return problem.input();
}

PlanningInput changed(const std::vector<std::string>& changes) {
  auto input = apply_changes(three_machines(), changes);
  if (!input.ok()) ADD_FAILURE() << describe(input.error());
  return input.ok() ? *input : PlanningInput{};
}

double work_s(const PlanningInput& input, const std::string& machine) {
  return input.profile.find(machine, "cpu")->layers.at("l0").front().backward_s;
}

TEST(WhatIf, ChangesAllLinksOfAMachineBothWays) {
  const Cluster cluster = changed({"link.m1.bandwidth_mbps=2500"}).cluster;
  for (const char* other : {"m0", "m2"}) {
    EXPECT_EQ(cluster.link("m1", other).bandwidth_bytes_per_s, 2500e6 / 8);
    EXPECT_EQ(cluster.link(other, "m1").bandwidth_bytes_per_s, 2500e6 / 8);
    EXPECT_EQ(cluster.link(other, "m1").latency_s, 0.001);
  }
  EXPECT_EQ(cluster.link("m0", "m2").bandwidth_bytes_per_s, 1e6);
}

TEST(WhatIf, ChangesTheLinkBetweenTwoMachines) {
  const Cluster cluster = changed({"link.m0.m2.latency_us=50"}).cluster;
  EXPECT_DOUBLE_EQ(cluster.link("m0", "m2").latency_s, 50e-6);
  EXPECT_DOUBLE_EQ(cluster.link("m2", "m0").latency_s, 50e-6);
  EXPECT_EQ(cluster.link("m0", "m1").latency_s, 0.001);
}

TEST(WhatIf, TakesTheNetworkOnlyWhereNoLinkIsSet) {
  const Cluster cluster =
      changed({"link.m0.m1.bandwidth_mbps=80", "network.bandwidth_mbps=800"}).cluster;
  EXPECT_EQ(cluster.link("m0", "m1").bandwidth_bytes_per_s, 10e6);
  EXPECT_EQ(cluster.link("m1", "m2").bandwidth_bytes_per_s, 100e6);
}

TEST(WhatIf, PutsAMachineOnACable) {
  PlanningInput input = three_machines();
  input.cluster.machines[1].medium = "wifi";
  const auto cabled = apply_changes(input, {"machine.m1.medium=cable"});
  ASSERT_TRUE(cabled.ok());
  EXPECT_EQ(cabled->cluster.machines[1].medium, "");
  EXPECT_EQ(changed({"machine.m0.medium=wifi"}).cluster.machines[0].medium, "wifi");
}

TEST(WhatIf, KnowsACableInAnyCaseOfLetters) {
  PlanningInput input = three_machines();
  input.cluster.machines[1].medium = "wifi";
  const auto cabled = apply_changes(input, {"machine.m1.medium=Cable", "machine.m0.medium=WiFi"});
  ASSERT_TRUE(cabled.ok());
  EXPECT_EQ(cabled->cluster.machines[1].medium, "");
  EXPECT_EQ(cabled->cluster.machines[0].medium, "wifi");
}

// A half-duplex link between two machines does not show which of them is on the shared medium.
TEST(WhatIf, TakesTheOneThatGetsACableForTheOneOnTheRadio) {
  PlanningInput input = three_machines();
  std::vector<Machine>& machines = input.cluster.machines;
  for (Machine& machine : machines) {
    machine.medium = "m0";
    machine.medium_is_supposed = true;
  }
  const auto of_three = apply_changes(input, {"machine.m1.medium=cable"});
  EXPECT_EQ(of_three->cluster.machines[0].medium, "m0");
  EXPECT_EQ(of_three->cluster.machines[2].medium, "m0");
  machines.pop_back();
  const auto of_two = apply_changes(input, {"machine.m1.medium=cable"});
  EXPECT_EQ(of_two->cluster.machines[0].medium, "");
  EXPECT_EQ(of_two->cluster.machines[1].medium, "");
  for (Machine& machine : machines) machine.medium_is_supposed = false;
  const auto known = apply_changes(input, {"machine.m1.medium=cable"});
  EXPECT_EQ(known->cluster.machines[0].medium, "m0");
}

TEST(WhatIf, AFactorIsOfWhatIsThere) {
  const PlanningInput input = changed({"network.bandwidth_mbps=x2.5", "machine.m0.memory_gib=x2"});
  EXPECT_DOUBLE_EQ(input.cluster.network.bandwidth_bytes_per_s, 2.5e6);
  EXPECT_DOUBLE_EQ(machine_memory_gib(input, "m0"), 2 * 1024.0);
}

TEST(WhatIf, TheNetworkIsOfLinksWithoutASpeedOfTheirOwn) {
  PlanningInput input = three_machines();
  for (const Machine& from : input.cluster.machines) {
    for (const Machine& to : input.cluster.machines) {
      if (from.name != to.name) input.cluster.links.push_back({from.name, to.name, {1e6, 0}});
    }
  }
  const auto refused = apply_changes(input, {"network.bandwidth_mbps=x2"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(describe(refused.error()), HasSubstr("link.m0.bandwidth_mbps=x2"));
  input.cluster.links.pop_back();
  EXPECT_TRUE(apply_changes(input, {"network.bandwidth_mbps=x2"}).ok());
}

TEST(WhatIf, TheMemoryOfAMachineOfCardsIsTheirs) {
  PlanningInput input = three_machines();
  input.cluster.machines[1].devices = {"cuda:0"};
  input.cluster.machines[1].memory_gib = 11;
  for (DeviceProfile& device : input.profile.devices) {
    if (device.machine == "m1") device.device = "cuda:0";
  }
  const double before_gib = machine_memory_gib(input, "m1");
  const auto more = apply_changes(input, {"machine.m1.memory_gib=x2"});
  ASSERT_TRUE(more.ok());
  EXPECT_DOUBLE_EQ(machine_memory_gib(*more, "m1"), 2 * before_gib);
  EXPECT_EQ(more->profile.find("m1", "cuda:0")->memory_bytes,
            2 * input.profile.find("m1", "cuda:0")->memory_bytes);
}

TEST(WhatIf, SpeedDividesTheTimesOfOneMachine) {
  const PlanningInput input = changed({"machine.m1.speed=2"});
  EXPECT_DOUBLE_EQ(work_s(input, "m1"), work_s(three_machines(), "m1") / 2);
  EXPECT_DOUBLE_EQ(work_s(input, "m0"), work_s(three_machines(), "m0"));
}

TEST(WhatIf, AddsATwinWithTheSameLinks) {
  const PlanningInput input = changed({"link.m0.m1.bandwidth_mbps=8", "add=m1", "add=m1"});
  ASSERT_EQ(input.cluster.machines.size(), 5U);
  EXPECT_EQ(input.cluster.machines.back().name, "m1-3");
  EXPECT_EQ(input.cluster.link("m0", "m1-3").bandwidth_bytes_per_s, 1e6);
  EXPECT_DOUBLE_EQ(work_s(input, "m1-2"), work_s(input, "m1"));
}

TEST(WhatIf, TakesACodecThatWasMeasured) {
  EXPECT_EQ(changed({"codec=half"}).options.codecs, std::vector<std::string>{"half"});
}

// With "auto" the planner may round more if that is worth it; an explicit codec is used alone.
TEST(WhatIf, ACodecThatIsNamedIsTheOnlyOne) {
  PlanningInput input = three_machines();
  input.options.coarser = {{{"half"}, {"half"}, 0.03}};
  const auto boundary = apply_changes(input, {"codec=none"});
  ASSERT_TRUE(boundary.ok());
  EXPECT_EQ(boundary->options.codecs, std::vector<std::string>{"none"});
  EXPECT_THAT(boundary->options.coarser.front().codecs, IsEmpty());
  EXPECT_THAT(boundary->options.coarser.front().gradient_codecs, ElementsAre("half"));
  const auto sums = apply_changes(input, {"gradients=half"});
  ASSERT_TRUE(sums.ok());
  EXPECT_EQ(sums->options.gradient_codecs, std::vector<std::string>{"half"});
  EXPECT_THAT(sums->options.coarser.front().gradient_codecs, IsEmpty());
  EXPECT_THAT(sums->options.coarser.front().codecs, ElementsAre("half"));
}

TEST(WhatIf, AMicroBatchIsTakenInsteadOfTheUsualOne) {
  PlanningInput input = three_machines();
  input.options.usual_micro_batch = 2;
  const auto changed = apply_changes(input, {"micro_batch=4"});
  ASSERT_TRUE(changed.ok());
  const auto plan = make_plan(*changed);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->micro_batch, 4);
}

TEST(WhatIf, OnlySumsMayLeaveValuesOut) {
  PlanningInput input = three_machines();
  for (DeviceProfile& device : input.profile.devices) {
    device.codecs["topk(0.01)"] = device.codecs.at("half");
  }
  const auto boundary = apply_changes(input, {"codec=topk(0.01)"});
  ASSERT_FALSE(boundary.ok());
  EXPECT_THAT(describe(boundary.error()), HasSubstr("gradients=topk(0.01)"));
  EXPECT_TRUE(apply_changes(input, {"gradients=topk(0.01)"}).ok());
}

// A profile of an earlier version may have measured it.
TEST(WhatIf, RefusesACodecThatWasRemoved) {
  PlanningInput input = three_machines();
  for (DeviceProfile& device : input.profile.devices) {
    device.codecs["lowrank(4)|fp16"] = device.codecs.at("half");
  }
  for (const char* change : {"gradients=lowrank(4)|fp16", "codec=lowrank(4)|fp16"}) {
    const auto changed = apply_changes(input, {change});
    ASSERT_FALSE(changed.ok()) << change;
    EXPECT_EQ(changed.error().code, ErrorCode::kConfig);
    EXPECT_THAT(changed.error().remedy, HasSubstr("use int8 or int4"));
  }
}

TEST(WhatIf, ForgetsWhatWasPinnedOnADroppedMachine) {
  PlanningInput input = three_machines();
  input.options.pins.always = {"m1", "m2"};
  input.options.pins.layers = {{"l3", "m2"}};
  const auto dropped = apply_changes(input, {"drop=m2"});
  ASSERT_TRUE(dropped.ok());
  EXPECT_EQ(dropped->options.pins, Pins{.always = {"m1"}});
  EXPECT_THAT(dropped_pins(input, *dropped), ElementsAre("layer l3 on m2", "always m2"));
  EXPECT_THAT(dropped_pins(input, input), IsEmpty());
}

// Once a machine that is fast to reach over the radio is removed, the radio is no slower for the
// others.
TEST(WhatIf, ADroppedMachineStillTellsHowFastANetworkIs) {
  PlanningInput input = three_machines();
  const auto up_of_m1 = [](const PlanningInput& of) {
    const auto cost = CostModel::make(of.model, of.cluster, of.profile, 1, ResidentState{});
    return cost.ok() ? cost->networks()[1].up_bytes_per_s : 0;
  };
  input.cluster.links = {{"m1", "m0", {1e4, 0}}, {"m1", "m2", {5e6, 0}}};
  EXPECT_DOUBLE_EQ(up_of_m1(input), 5e6);
  EXPECT_DOUBLE_EQ(up_of_m1(without_machine(input, "m2")), 5e6);
  input.cluster.links.pop_back();
  input.cluster.network.bandwidth_bytes_per_s = 7e6;
  EXPECT_DOUBLE_EQ(up_of_m1(without_machine(input, "m2")), 7e6);
  const auto slower = apply_changes(input, {"drop=m2", "link.m1.bandwidth_mbps=x0.5"});
  ASSERT_TRUE(slower.ok());
  EXPECT_DOUBLE_EQ(up_of_m1(*slower), 3.5e6);
}

TEST(WhatIf, FindsMachinesWithDotsInTheirNames) {
  PlanningInput input = three_machines();
  input.cluster.machines[0].name = "a.b";
  const auto result = apply_changes(input, {"link.a.b.m1.latency_us=0"});
  ASSERT_TRUE(result.ok()) << describe(result.error());
  EXPECT_EQ(result->cluster.link("m1", "a.b").latency_s, 0);
  EXPECT_EQ(result->cluster.link("m2", "a.b").latency_s, 0.001);
}

struct Refusal {
  const char* change;
  const char* part;  // of the message
};

TEST(WhatIf, NamesWhatItDoesNotUnderstand) {
  for (const auto& [change, part] : std::vector<Refusal>{
           {"", "use link.MACHINE"},
           {"drop", "no machine is named ''"},
           {"drop=laptop", "m0, m1, m2"},
           {"add=m01", "did you mean"},
           {"speed=2", "use link.MACHINE"},
           {"codec=zip", "measured there: half, none"},
           {"codec=zip", "unknown codec"},
           {"codec=fp16", "m0/cpu was not measured with it"},
           {"gradients=fp16", "m0/cpu was not measured with it"},
           {"micro_batch=0", "use one of 1, 2, 4, 8, 16, 32"},
           {"micro_batch=3", "a step's 32 samples cannot be divided"},
           {"machine.m0.colour=2", "use link.MACHINE"},
           {"link.m0.m0.latency_us=1", "no machine is named 'm0.m0'"},
           {"link.m0.latency=1", "use link.MACHINE"},
           {"network.m0.latency_us=1", "use link.MACHINE"},
           {"machine.m0.medium=", "cable is none"},
           {"machine.m0.medium=Ethernet", "write cable, or leave medium out"},
           {"machine.m3.medium=cable", "no machine is named 'm3'"},
           {"machine.m0.speed=0", "'0' is not a number"},
           {"machine.m0.speed=nan", "'nan' is not a number"},
           {"machine.m0.speed=2x", "'2x' is not a number"},
           {"machine.m0.memory_gib=x1e9", "beyond the limit of a machine"},
           {"machine.m0.memory_gib=-1", "'-1' is not a number"},
           {"network.bandwidth=x2", "use link.MACHINE"},
           {"network.bandwidth_mbps=1e300", "'1e300' is not a number"},
           {"network.bandwidth_mbps=x", "'x' is not a number"},
       }) {
    const auto result = apply_changes(three_machines(), {change});
    ASSERT_FALSE(result.ok()) << change;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage) << change;
    EXPECT_THAT(describe(result.error()), HasSubstr(part));
  }
}

TEST(WhatIf, KeepsTheLastMachine) {
  const auto result = apply_changes(three_machines(), {"drop=m0", "drop=m1", "drop=m2"});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().what, HasSubstr("drop=m2"));
}

std::string made(const PlanningInput& input) {
  const auto plan = make_plan(input);
  return plan.ok() ? plan_to_json(*plan).dump() : plan.error().what;
}

RC_GTEST_PROP(WhatIf, ChangesThatChangeNothingGiveTheSamePlan, ()) {
  const PlanningInput input = random_problem().input();
  std::vector<std::string> changes = {"machine.m0.speed=1", "machine.m0.speed=x1"};
  for (const char* key : {"network.bandwidth_mbps=x1", "network.latency_us=x1"}) {
    const auto alone = apply_changes(input, {key});
    if (alone.ok()) {
      changes.emplace_back(key);
    } else {
      RC_ASSERT(describe(alone.error()).find("its own speed") != std::string::npos);
    }
  }
  const auto same = apply_changes(input, changes);
  RC_ASSERT(same.ok());
  RC_ASSERT(made(*same) == made(input));
}

// Its links represent the speed of the others' networks, so they change with that network. A link
// with the same speed by its own entry cannot be distinguished from these.
RC_GTEST_PROP(WhatIf, ANetworkAndAMachineLessGiveTheSameInAnyOrder, ()) {
  const PlanningInput input = random_problem().input();
  if (input.cluster.machines.size() < 2) return;
  for (const LinkOverride& link : input.cluster.links) {
    if (link.speed == input.cluster.network) return;
  }
  const std::string network = "network.bandwidth_mbps=x0.25";
  const auto before = apply_changes(input, {network, "drop=m1"});
  if (!before.ok()) return;
  const auto after = apply_changes(input, {"drop=m1", network});
  if (!after.ok()) return;
  const auto one = make_plan(*before);
  const auto other = make_plan(*after);
  RC_ASSERT(one.ok() == other.ok());
  if (one.ok()) RC_ASSERT(one->predicted_step_s == other->predicted_step_s);
}

// Three replicas, whose all-reduce is divided by the speed of each machine's link to the others.
TEST(WhatIf, AFastLinkToAMachineThatIsNotUsedChangesNothing) {
  Problem problem;
  problem.layers = {{.work_s = 0.1, .parameters = 1000}};
  problem.machines.resize(4);
  problem.link = {1e6, 0};
  problem.options.pins.never = {"m3"};
  const auto now = make_plan(problem.input());
  ASSERT_TRUE(now.ok()) << describe(now.error());
  ASSERT_EQ(now->ranks.size(), 3U);
  const auto input = apply_changes(problem.input(), {"link.m0.m3.bandwidth_mbps=x100"});
  ASSERT_TRUE(input.ok());
  const auto then = make_plan(*input);
  ASSERT_TRUE(then.ok());
  for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(then->ranks[r].link_mbps, 8) << r;
}

RC_GTEST_PROP(WhatIf, DroppingAMachineThatIsNotUsedChangesNoStep, ()) {
  const PlanningInput input = random_problem().input();
  const auto plan = make_plan(input);
  if (!plan.ok()) return;
  for (const Machine& machine : input.cluster.machines) {
    const auto is_it = [&](const RankPlan& rank) { return rank.machine == machine.name; };
    if (std::any_of(plan->ranks.begin(), plan->ranks.end(), is_it)) continue;
    const auto without = make_plan(without_machine(input, machine.name));
    RC_ASSERT(without.ok());
    RC_ASSERT(without->predicted_step_s <= plan->predicted_step_s * (1 + 1e-9));
    RC_ASSERT(without->predicted_step_s >= plan->predicted_step_s * (1 - 1e-9));
  }
}

// Two machines and at most three layers: every pipeline is simulated, so the plan is optimal.
RC_GTEST_PROP(WhatIf, MoreBandwidthNeverMakesTheStepLonger, ()) {
  Problem problem = random_problem();
  problem.machines.resize(2, {.speed = 1, .memory_bytes = 20000});
  if (problem.layers.size() > 3) problem.layers.resize(3);
  const auto now = make_plan(problem.input());
  if (!now.ok()) return;
  const auto input = apply_changes(
      problem.input(), {fmt::format("link.m0.bandwidth_mbps=x{}", *rc::gen::inRange(2, 100))});
  RC_ASSERT(input.ok());
  const auto then = make_plan(*input);
  RC_ASSERT(then.ok());
  RC_ASSERT(then->predicted_step_s <= now->predicted_step_s + 1e-9);
}

TEST(ComparePlans, ShowsWhatChangesForEachMachine) {
  const PlanningInput input = three_machines();
  const auto now = make_plan(input);
  const auto then = make_plan(without_machine(input, "m2"));
  ASSERT_TRUE(now.ok() && then.ok());
  const std::string text = compare_plans(*now, *then, input.model);
  EXPECT_THAT(text, HasSubstr("not used"));
  EXPECT_THAT(text, HasSubstr("+"));  // slower without it
  EXPECT_THAT(text, HasSubstr("layers 0-"));
  EXPECT_THAT(compare_plans(*now, *now, input.model), Not(HasSubstr("not used")));
}

}  // namespace
}  // namespace motley
