#include "partitioner/report/explain.h"

#include <fmt/format.h>

#include <gmock/gmock.h>

#include "partitioner/report/plan_analysis.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Problem three_machines() {
  Problem problem;
  problem.layers.assign(12, {.work_s = 0.1, .output_floats = 100, .saved_bytes = 1000});
  problem.machines = {{1}, {0.5}, {0.25}};
  problem.options.replicas = false;
  return problem;
}

Planning planning_of(const PlanningInput& input) {
  auto planning = plan_in_full(input.model, input.cluster, input.profile, input.options);
  if (!planning.ok()) ADD_FAILURE() << describe(planning.error());
  return planning.ok() ? *planning : Planning{};
}

std::string full_text(const PlanningInput& input) {
  const auto text = explain_in_full(input, planning_of(input));
  return text.ok() ? *text : describe(text.error());
}

PlanAnalysis analysis_of(const PlanningInput& input) {
  const auto analysis = analyse_plan(input, planning_of(input).plan);
  if (!analysis.ok()) ADD_FAILURE() << describe(analysis.error());
  return analysis.ok() ? *analysis : PlanAnalysis{};
}

std::string short_text(const Plan& plan, const Problem& problem) {
  const auto text = explain_plan(plan, problem.model(), problem.cluster(), problem.profile());
  if (!text.ok()) ADD_FAILURE() << describe(text.error());
  return text.ok() ? *text : "";
}

TEST(ExplainPlan, ShowsStagesLinksAndNotes) {
  const Problem problem = three_machines();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  const std::string text = short_text(*plan, problem);
  for (const char* part :
       {"stage", "memory / limit", "0 → 1", "tokens/s", "micro-batches", "l11"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (const std::string& note : plan->notes) EXPECT_THAT(text, HasSubstr(note));
}

TEST(ExplainPlan, SaysWhoTakesTurnsAndWhereThatIsNotKnown) {
  const Problem problem = three_machines();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  ASSERT_GT(plan->rank_count(), 1);
  Cluster cluster = problem.cluster();
  for (Machine& machine : cluster.machines) machine.medium = "wifi";
  const auto text = [&] {
    return explain_plan(*plan, problem.model(), cluster, problem.profile()).value();
  };
  EXPECT_THAT(text(), HasSubstr("at different times, as over Wi-Fi\n"));
  for (Machine& machine : cluster.machines) machine.medium_is_supposed = true;
  EXPECT_THAT(text(), HasSubstr("as over Wi-Fi, though one of them may be on a cable\n"));
}

TEST(ExplainPlan, SaysInWhichNumbersWhereTheyAreNotFp32) {
  const Problem problem = three_machines();
  Plan plan = problem.plan().value();
  EXPECT_THAT(short_text(plan, problem), Not(HasSubstr("numbers")));
  for (RankPlan& rank : plan.ranks) rank.compute_dtype = "bf16";
  EXPECT_THAT(short_text(plan, problem), HasSubstr("dtype     bf16\n"));
  plan.ranks[1].compute_dtype = "fp32";
  EXPECT_THAT(short_text(plan, problem),
              HasSubstr("dtype     bf16 on m0/cpu, m1/cpu; fp32 on m2/cpu\n"));
}

TEST(ExplainPlan, SaysWhichCoresComputeWhereProfilesTell) {
  const Problem problem = three_machines();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->ranks.size(), 3U);
  Profile profile = problem.profile();
  const auto text = [&] {
    return explain_plan(*plan, problem.model(), problem.cluster(), profile).value();
  };
  EXPECT_THAT(text(), Not(HasSubstr("cores")));
  for (DeviceProfile& device : profile.devices) device.cores = 1;
  EXPECT_THAT(text(), HasSubstr("cores     all 3 compute\n"));
  profile.devices[1].cores = 8;
  EXPECT_THAT(text(),
              HasSubstr("cores     3 of 10 compute; unused: 7 of m1 (run.threads, threads)"));
  // Machines that are one computer report the same cores.
  for (DeviceProfile& device : profile.devices) {
    device.cores = 2;
    device.computer = "one";
  }
  EXPECT_THAT(text(), HasSubstr("cores     all 2 compute; 3 workers share the 2 of m0, m1, m2\n"));
}

// 4 MB at 1 MB/s and half a second of latency.
TEST(ExplainPlan, ShowsWhatTheSumsOfReplicasTake) {
  Problem problem;
  problem.layers = {{.work_s = 10, .parameters = 1'000'000}};
  problem.machines = {{1}, {1}};
  problem.link = {1e6, 0.5};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  ASSERT_EQ(plan->rank_count(), 2);
  EXPECT_THAT(short_text(*plan, problem),
              HasSubstr("\nall-reduce  over     codec  sends at most  takes\n"
                        "stage 0     m0 + m1  none   3.8 MiB        4.500 s\n\n"));
  const Problem single = three_machines();
  EXPECT_THAT(short_text(*single.plan(), single), Not(HasSubstr("all-reduce")));
}

TEST(ExplainPlan, SaysWhereTheSpeedsOfLinksComeFromUntilTheyAreMeasured) {
  const Problem problem = three_machines();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  Cluster cluster = problem.cluster();
  const auto text = [&] {
    return explain_plan(*plan, problem.model(), cluster, problem.profile()).value();
  };
  for (Machine& machine : cluster.machines) machine.address = "";
  cluster.links.clear();
  EXPECT_THAT(text(), Not(HasSubstr("links "))) << "one computer";
  for (Machine& machine : cluster.machines) machine.address = "192.0.2.1";
  cluster.network.bandwidth_bytes_per_s = 12.5e6;
  EXPECT_THAT(text(), HasSubstr("links     assumed as 100 Mbit/s, from the cluster file; "));
  for (const Machine& from : cluster.machines) {
    for (const Machine& to : cluster.machines) {
      cluster.links.push_back({from.name, to.name, cluster.network});
    }
  }
  EXPECT_THAT(text(), Not(HasSubstr("links ")));
  const std::string& first = plan->ranks[0].machine;
  const std::string& second = plan->ranks[1].machine;
  std::erase_if(cluster.links,
                [&](const LinkOverride& link) { return link.from == second && link.to == first; });
  EXPECT_THAT(text(),
              HasSubstr(fmt::format("links     {} → {} assumed as 100 Mbit/s, ", second, first)))
      << "one direction";
}

// That the first stage and the third have no link entry does not matter.
TEST(ExplainPlan, SaysNothingOfTheSpeedsOfLinksThatThePlanDoesNotUse) {
  const Problem problem = three_machines();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->chunks.size(), 3U);
  Cluster cluster = problem.cluster();
  for (Machine& machine : cluster.machines) machine.address = "192.0.2.1";
  const auto machine_of = [&](std::size_t chunk) {
    return plan->ranks[plan->chunks[chunk].replicas.front().rank.index()].machine;
  };
  for (std::size_t c = 0; c + 1 < plan->chunks.size(); ++c) {
    cluster.links.push_back({machine_of(c), machine_of(c + 1), cluster.network});
    cluster.links.push_back({machine_of(c + 1), machine_of(c), cluster.network});
  }
  const auto text = [&](const ModelSpec& model) {
    return explain_plan(*plan, model, cluster, problem.profile()).value();
  };
  EXPECT_THAT(text(problem.model()), Not(HasSubstr("links ")));
  ModelSpec tied = problem.model();
  tie(tied);
  EXPECT_THAT(text(tied), HasSubstr(" assumed as ")) << "ends that sum a gradient";
}

TEST(ExplainPlan, ShowsTheLinkOfAStageThatIsSharedWithItsNeighbour) {
  const Problem problem = three_machines();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  Plan shared = *plan;
  shared.chunks = {{.first_layer = 0,
                    .layer_count = 6,
                    .replicas = {{Rank{0}, 5}, {Rank{1}, 3}},
                    .codec = "none"},
                   {.first_layer = 6, .layer_count = 6, .replicas = {{Rank{0}, 8}}}};
  shared.ranks.resize(2);
  shared.ranks[0].machine = "m0";
  shared.ranks[1].machine = "m1";
  shared.micro_batches = 8;
  EXPECT_THAT(short_text(shared, problem), HasSubstr("0 → 1  m0 + m1  m0  "));
}

TEST(ExplainPlan, NamesNoMachineThatAPinExcludesAsLeftOut) {
  Problem problem = three_machines();
  problem.options.pins.never = {"m1"};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(short_text(*plan, problem), Not(HasSubstr("m1/cpu")));
}

TEST(ExplainPlan, RefusesAPlanForOtherMachines) {
  const Problem problem = three_machines();
  auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  plan->ranks[0].machine = "elsewhere";
  const auto refused = explain_plan(*plan, problem.model(), problem.cluster(), problem.profile());
  ASSERT_FALSE(refused.ok()) << *refused;
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(describe(refused.error()), HasSubstr("elsewhere/cpu, which the cluster lacks"));
}

TEST(ExplainPlan, CountsHowOftenAPlanNeedsADevice) {
  const Problem problem = three_machines();
  auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->ranks.size(), 3U);
  for (RankPlan& rank : plan->ranks) rank.machine = "m0";
  const auto refused = explain_plan(*plan, problem.model(), problem.cluster(), problem.profile());
  ASSERT_FALSE(refused.ok()) << *refused;
  EXPECT_THAT(refused.error().what, HasSubstr("m0/cpu 3 times, which the cluster has 1 time"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("--stages 3"));
}

TEST(ExplainPlan, RefusesAPlanOfAnotherModel) {
  const Problem problem = three_machines();
  auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  --plan->chunks.back().layer_count;
  const auto refused = explain_plan(*plan, problem.model(), problem.cluster(), problem.profile());
  ASSERT_FALSE(refused.ok()) << *refused;
  EXPECT_EQ(refused.error().what, "the plan is of another model");
  EXPECT_EQ(refused.error().cause, "it ends with layer 11 of 12");
}

TEST(ExplainPlan, RefusesACodecThatWasNotMeasured) {
  const Problem problem = three_machines();
  auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  plan->chunks.front().codec = "int4";
  const auto refused = explain_plan(*plan, problem.model(), problem.cluster(), problem.profile());
  ASSERT_FALSE(refused.ok()) << *refused;
  EXPECT_THAT(refused.error().what, HasSubstr("lacks codec 'int4'"));
}

TEST(ExplainPlan, ShowsWhoSharesAStageAndWhoRecomputes) {
  const Problem problem = three_machines();
  auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  Plan shared = *plan;
  shared.chunks = {{.first_layer = 0,
                    .layer_count = 12,
                    .replicas = {{Rank{0}, 5}, {Rank{1}, 2}, {Rank{2}, 1}},
                    .recompute = true}};
  shared.micro_batches = 8;
  const std::string text = short_text(shared, problem);
  EXPECT_THAT(text, HasSubstr("0c"));
  EXPECT_THAT(text, HasSubstr("takes 5"));
  EXPECT_THAT(text, HasSubstr("of 8 micro-batches"));
  EXPECT_THAT(text, HasSubstr("stage 0 uses activation checkpointing"));
}

TEST(ExplainInFull, AnswersEveryQuestionInFewLines) {
  const std::string text = full_text(three_machines().input());
  for (const char* part :
       {"Use of each machine's time", "Links", "Bottleneck", "Gain of each machine", "without m0",
        "Other plans", "one device", "Quality of the plan"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60) << text;
}

TEST(ExplainInFull, SaysWhatAMachineThatIsLeftOutWouldDo) {
  Problem problem = three_machines();
  problem.link = {100, 0.1};  // sending an activation takes 4 s, computing it 1.2 s
  const std::string text = full_text(problem.input());
  EXPECT_THAT(text, HasSubstr("also with m1"));
  EXPECT_THAT(text, HasSubstr("+"));
}

TEST(ExplainInFull, SaysWhenAPinForbidsAMachine) {
  Problem problem = three_machines();
  problem.options.pins.never = {"m2"};
  EXPECT_THAT(full_text(problem.input()), HasSubstr("left out by a pin"));
}

TEST(ExplainInFull, SaysWhenTheModelNeedsAMachine) {
  Problem problem = three_machines();
  for (LayerSketch& layer : problem.layers) layer.parameters = 1 << 20;  // 16 MiB each
  for (MachineSketch& machine : problem.machines) machine.memory_bytes = 80 << 20;
  EXPECT_THAT(full_text(problem.input()), HasSubstr("no plan: the model does not fit"));
}

TEST(ExplainInFull, NamesTheLinkWhereItBinds) {
  Problem problem = three_machines();
  problem.machines.resize(2);
  problem.options.stages = 2;
  problem.link = {400, 0};  // one second per activation
  EXPECT_THAT(full_text(problem.input()), HasSubstr("the link from m"));
  EXPECT_THAT(full_text(three_machines().input()), HasSubstr("computing on stage"));
}

// Two machines compute for 4 s each and then wait 3 s for an all-reduce.
TEST(ExplainInFull, SaysThatLinksKeepRanksWaitingWhereNothingIsBusyForLong) {
  Problem problem;
  problem.layers = {{.work_s = 1, .parameters = 1'000'000}};
  problem.machines = {{1}, {1}};
  problem.link = {4e6 / 3, 0};
  problem.options.global_batch = 8;
  problem.options.micro_batch = 1;
  const std::string text = full_text(problem.input());
  EXPECT_THAT(text, HasSubstr("No bottleneck"));
  EXPECT_THAT(text, HasSubstr("The rest is waiting for\n  links, most on stage 0"));
  EXPECT_THAT(text, HasSubstr("--set compression.gradients=auto for all-reduces"));
  EXPECT_THAT(text, Not(HasSubstr("smaller micro-batches")));
}

TEST(ExplainInFull, OneMachineNeedsNoComparison) {
  Problem problem = three_machines();
  problem.machines.resize(1);
  const std::string text = full_text(problem.input());
  EXPECT_THAT(text, Not(HasSubstr("Gain of each machine")));
  EXPECT_THAT(text, Not(HasSubstr("Links")));
}

RC_GTEST_PROP(PlanAnalysis, TheTimesOfEachRankAddUpToTheStep, ()) {
  const PlanningInput input = random_problem().input();
  const auto planning = plan_in_full(input.model, input.cluster, input.profile, input.options);
  if (!planning.ok()) return;
  const auto analysis = analyse_plan(input, planning->plan);
  RC_ASSERT(analysis.ok());
  for (const RankTime& time : analysis->ranks) {
    const double parts_s[] = {time.compute_s, time.codec_s,      time.fill_s,
                              time.drain_s,   time.wait_stage_s, time.wait_link_s};
    double sum_s = 0;
    for (const double part_s : parts_s) {
      RC_ASSERT(part_s >= -1e-9);
      sum_s += part_s;
    }
    RC_ASSERT(std::abs(sum_s - analysis->step_s) <= 1e-9);
  }
}

RC_GTEST_PROP(PlanAnalysis, WithoutAMachineNoStepIsMuchShorter, ()) {
  const PlanningInput input = random_problem().input();
  const auto planning = plan_in_full(input.model, input.cluster, input.profile, input.options);
  if (!planning.ok()) return;
  const auto analysis = analyse_plan(input, planning->plan);
  RC_ASSERT(analysis.ok());
  for (const MachineContribution& contribution : analysis->machines) {
    if (contribution.step_s) RC_ASSERT(*contribution.step_s >= 0.95 * analysis->step_s);
  }
}

TEST(PlanAnalysis, CountsTheBytesOfEachDirection) {
  Problem problem = three_machines();
  problem.machines.resize(2);
  problem.options.stages = 2;
  problem.link = {1e6, 0};
  const PlanAnalysis analysis = analysis_of(problem.input());
  ASSERT_EQ(analysis.links.size(), 2U);
  // 32 samples of 100 floats in each direction, plus frame headers and targets.
  for (const LinkUse& link : analysis.links) {
    EXPECT_GE(link.bytes, 32 * 100 * 4);
    EXPECT_LE(link.bytes, 32 * 100 * 4 + 32 * 200);
    EXPECT_NEAR(link.busy_s, link.bytes / 1e6, 0.001);
  }
}

// The simulator may predict less than any estimate of the search.
TEST(ExplainInFull, DoesNotSetAnEstimateAboveThePrediction) {
  const PlanningInput input = three_machines().input();
  Planning planning = planning_of(input);
  const auto text = [&] { return explain_in_full(input, planning).value(); };
  planning.bounds.method = "exact";
  planning.bounds.proven = true;
  planning.bounds.step_bound_s = 2 * planning.plan.predicted_step_s;
  EXPECT_THAT(text(), HasSubstr("no other plan with one stage a device is estimated to be faster"));
  EXPECT_THAT(text(), Not(HasSubstr("is estimated below")));
  planning.bounds.step_bound_s = planning.plan.predicted_step_s / 2;
  EXPECT_THAT(text(), HasSubstr("no plan with one stage a device is estimated below "));
}

}  // namespace
}  // namespace motley
