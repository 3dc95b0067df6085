#include "partitioner/simulate/simulator.h"

#include <fmt/format.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "pipeline/schedule/schedules.h"
#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

// `stages` machines with a layer of 1 s forward and 2 s backward each.
Problem chain_of(int stages) {
  Problem problem;
  problem.layers.assign(static_cast<std::size_t>(stages), {3, 0, 10, 0});
  problem.machines.resize(static_cast<std::size_t>(stages));
  return problem;
}

Plan one_layer_each(int stages, int micro_batches, const std::string& schedule) {
  Plan plan;
  for (int i = 0; i < stages; ++i) {
    plan.ranks.push_back({fmt::format("m{}", i), "cpu"});
    plan.chunks.push_back({i, 1, {{Rank{i}, micro_batches}}});
  }
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  return plan;
}

Result<SimulatedStep> simulate(const Problem& problem, const Plan& plan) {
  MOTLEY_ASSIGN(const CostModel cost, problem.cost());
  MOTLEY_ASSIGN(const Schedule schedule, make_schedule(plan, false));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  return simulate_step(schedule, plan, problem.model(), cost, slots, {.spans = true});
}

double step_s(const Problem& problem, const Plan& plan) {
  const auto step = simulate(problem, plan);
  EXPECT_TRUE(step.ok());
  return step.ok() ? step->step_s : -1;
}

TEST(Simulator, AgreesWithTheBubbleOfEqualStages) {
  for (const int stages : {1, 2, 3, 5}) {
    for (const int micro_batches : {1, 2, 4, 9}) {
      const double expected_s = 3.0 * (micro_batches + stages - 1);
      for (const char* schedule : {"gpipe", "1f1b"}) {
        EXPECT_NEAR(step_s(chain_of(stages), one_layer_each(stages, micro_batches, schedule)),
                    expected_s, 1e-9)
            << stages << " stages, " << micro_batches << " micro-batches, " << schedule;
      }
    }
  }
}

TEST(Simulator, LeavesOneForwardAStageOfTheBubbleWhereBackwardIsSplit) {
  for (const int stages : {1, 2, 3, 5}) {
    for (const int micro_batches : {5, 9}) {
      Problem problem = chain_of(stages);
      for (LayerSketch& layer : problem.layers) layer.queued_bytes = 0;
      EXPECT_NEAR(step_s(problem, one_layer_each(stages, micro_batches, "split")),
                  3.0 * micro_batches + stages - 1, 1e-9)
          << stages << " stages, " << micro_batches << " micro-batches";
    }
  }
}

TEST(Simulator, AddsLatencyOfEachHopAndOfTheVote) {
  Problem problem = chain_of(2);
  problem.link = {1e18, 0.25};
  // One micro-batch: activation and gradient, rank 1's vote together with the gradient, and the
  // vote's result.
  EXPECT_NEAR(step_s(problem, one_layer_each(2, 1, "1f1b")), 6 + 3 * 0.25, 1e-9);
}

// Two stages of 1 s forward and 1 s for each part of backward, transfers of half a forward, three
// micro-batches in flight in the first stage.
double step_s_over_slow_hops(const std::string& schedule) {
  Problem problem = chain_of(2);
  for (LayerSketch& layer : problem.layers) layer.queued_bytes = 0;
  problem.link = {1e18, 0.5};
  Plan plan = one_layer_each(2, 8, schedule);
  plan.chunks[0].in_flight = 3;
  plan.chunks[1].in_flight = 1;
  return step_s(problem, plan);
}

TEST(Simulator, ShowsWhatSplitBackwardGains) {
  // Rank 1 has its first input after 1.5 s and then works for 24 s without a gap. Its last
  // gradient reaches rank 0 half a second later, whose backward takes 2 s; then follows the vote's
  // result.
  EXPECT_NEAR(step_s_over_slow_hops("1f1b"), 1.5 + 24 + 0.5 + 2 + 0.5, 1e-9);
  // The last gradient is sent before three weight parts. Rank 0 finishes together with rank 1;
  // only rank 1's vote and the result follow.
  EXPECT_NEAR(step_s_over_slow_hops("split"), 1.5 + 24 + 0.5 + 0.5, 1e-9);
}

TEST(Simulator, NeedsThePartsOfBackwardForSplit) {
  const auto step = simulate(chain_of(2), one_layer_each(2, 2, "split"));
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().code, ErrorCode::kConfig);
  EXPECT_EQ(step.error().what, "the profile of m0/cpu lacks the two parts of backward");
}

TEST(Simulator, LetsALinkCarryOneMessageAtATime) {
  Problem problem = chain_of(2);
  problem.link = {8, 0};  // after the targets of the micro-batch, an activation takes 13 s
  const auto step = simulate(problem, one_layer_each(2, 3, "gpipe"));
  ASSERT_TRUE(step.ok());
  double free_s = 0;
  for (const TraceSpan& span : step->spans) {
    if (span.rank != Rank{0} || span.lane != "link to 1") continue;
    EXPECT_GE(span.start_s, free_s - 1e-9);
    free_s = span.start_s + span.duration_s;
  }
  EXPECT_NEAR(free_s, step->step_s, 1e-9);  // the vote's result comes last
}

TEST(Simulator, AccountsForEachRanksTime) {
  const auto step = simulate(chain_of(2), one_layer_each(2, 2, "gpipe"));
  ASSERT_TRUE(step.ok());
  EXPECT_NEAR(step->compute_s[0], 6, 1e-9);
  EXPECT_NEAR(step->compute_s[0] + step->wait_s[0], step->step_s, 1e-9);
  EXPECT_NEAR(step->wait_sender_s[0], 3, 1e-9);
  EXPECT_NEAR(step->wait_link_s[0], 0, 1e-9);
  const auto by_start = [](const TraceSpan& a, const TraceSpan& b) {
    return a.start_s < b.start_s;
  };
  EXPECT_TRUE(std::is_sorted(step->spans.begin(), step->spans.end(), by_start));
}

TEST(Simulator, CostsTheExchangeOfTiedGradients) {
  Problem problem = chain_of(2);
  problem.layers[0].parameters = 100;
  problem.link = {1e6, 0};
  ModelSpec model = problem.model();
  tie(model);
  const auto cost =
      CostModel::make(model, problem.cluster(), problem.profile(), 1, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  const Plan plan = one_layer_each(2, 1, "1f1b");
  ASSERT_TRUE(tied_across_ranks(model, plan));
  const auto with = simulate_step(*make_schedule(plan, true), plan, model, *cost, {0, 1});
  const auto without = simulate_step(*make_schedule(plan, false), plan, model, *cost, {0, 1});
  ASSERT_TRUE(with.ok() && without.ok());
  // 400 bytes in each direction at once, after a header; rank 1's vote (64 + 40 + 12 + 8 bytes) is
  // no longer sent together with the last gradient.
  EXPECT_NEAR(with->step_s - without->step_s, (400 + 64 + 124) / 1e6, 1e-9);
}

TEST(Simulator, SplitsWaitingByItsCause) {
  Problem problem = chain_of(2);
  problem.link = {1e18, 0.25};
  const auto step = simulate(problem, one_layer_each(2, 1, "1f1b"));
  ASSERT_TRUE(step.ok());
  // Rank 1 waits for the forward of rank 0 and its transfer, then for the vote's result. Rank 0
  // sends it after rank 1's gradient has arrived and its own backward of 2 s is done.
  EXPECT_NEAR(step->wait_sender_s[1], 1 + 0.25 + 2, 1e-9);
  EXPECT_NEAR(step->wait_link_s[1], 0.25 + 0.25, 1e-9);
  EXPECT_NEAR(step->wait_s[1], 3.75, 1e-9);
}

TEST(Simulator, SpendsTheCodecsTimeOnTheComputeStream) {
  const Problem problem = chain_of(2);  // their boundary has 10 floats
  Profile profile = problem.profile();
  profile.devices[0].codecs["fp16"] = {2, 0.01, 0.02};
  profile.devices[1].codecs["fp16"] = {2, 0.03, 0.04};
  const auto cost =
      CostModel::make(problem.model(), problem.cluster(), profile, 1, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  Plan plan = one_layer_each(2, 1, "1f1b");
  plan.chunks[0].codec = "fp16";
  const auto step =
      simulate_step(*make_schedule(plan, false), plan, problem.model(), *cost, {0, 1});
  ASSERT_TRUE(step.ok());
  EXPECT_NEAR(step->codec_s[0], 0.1 + 0.2, 1e-9);
  EXPECT_NEAR(step->codec_s[1], 0.4 + 0.3, 1e-9);
  EXPECT_NEAR(step->step_s, 6 + 1, 1e-9);
}

TEST(Simulator, SendsAsManyBytesAsTheCodecMakes) {
  Problem problem = chain_of(2);
  problem.link = {1, 0};
  Profile profile = problem.profile();
  profile.devices[0].codecs["fp16"] = profile.devices[1].codecs["fp16"] = {2, 0, 0};
  const auto cost =
      CostModel::make(problem.model(), problem.cluster(), profile, 1, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  Plan plan = one_layer_each(2, 1, "1f1b");
  const Schedule schedule = *make_schedule(plan, false);
  const auto plain = simulate_step(schedule, plan, problem.model(), *cost, {0, 1});
  plan.chunks[0].codec = "fp16";
  const auto half = simulate_step(schedule, plan, problem.model(), *cost, {0, 1});
  ASSERT_TRUE(plain.ok() && half.ok());
  EXPECT_NEAR(plain->step_s - half->step_s, 2 * 20, 1e-9);
}

TEST(Simulator, RunsTheForwardAgainWhereAChunkRecomputes) {
  Plan plan = one_layer_each(2, 3, "gpipe");
  for (ChunkPlan& chunk : plan.chunks) chunk.recompute = true;
  EXPECT_NEAR(step_s(chain_of(2), plan), 4.0 * (3 + 2 - 1), 1e-9);
}

// Two machines send each other the complete gradient, at the same time.
TEST(Simulator, SumsGradientsOverReplicas) {
  Problem problem = chain_of(1);
  problem.machines.resize(2);
  problem.layers[0].parameters = 1000;
  problem.link = {1000, 0};
  Plan plan = one_layer_each(1, 4, "1f1b");
  plan.ranks.push_back({"m1", "cpu"});
  plan.chunks[0].replicas = {{Rank{0}, 2}, {Rank{1}, 2}};
  const auto step = simulate(problem, plan);
  ASSERT_TRUE(step.ok());
  const double first = 40 + 12 + 24 + 8;  // with the layer, the factors and a hash
  const double second = 40 + 8;
  const double votes_s = (64 + second) / 1e3 + (64 + 4 * 2 + first + second) / 1e3;
  EXPECT_NEAR(step->step_s, 2 * 3 + (4000 + 64) / 1e3 + votes_s, 1e-9);
}

// A quarter of the gradient is final after each layer of the last backward, which takes 2 s; only
// the last one waits for its message of 1 s.
TEST(Simulator, SumsLayerByLayerBesideTheLastBackward) {
  Problem problem = chain_of(4);
  problem.machines.resize(2);
  for (LayerSketch& layer : problem.layers) layer.parameters = 250;
  problem.link = {1000, 0};
  Plan plan = one_layer_each(1, 4, "1f1b");
  plan.ranks.push_back({"m1", "cpu"});
  plan.chunks[0].layer_count = 4;
  plan.chunks[0].replicas = {{Rank{0}, 2}, {Rank{1}, 2}};
  const auto step = simulate(problem, plan);
  ASSERT_TRUE(step.ok());
  const double first = 40 + 4 * 12 + 24 + 8;
  const double second = 40 + 8;
  const double votes_s = (64 + second) / 1e3 + (64 + 4 * 2 + first + second) / 1e3;
  EXPECT_NEAR(step->step_s, 2 * 4 * 3 + (4000 + 64) / 4e3 + votes_s, 1e-9);
}

TEST(Simulator, SumsNothingOverReplicasWithoutParameters) {
  Problem problem = chain_of(1);
  problem.machines.resize(2);
  problem.layers[0].parameters = 0;
  Plan plan = one_layer_each(1, 4, "1f1b");
  plan.ranks.push_back({"m1", "cpu"});
  plan.chunks[0].replicas = {{Rank{0}, 2}, {Rank{1}, 2}};
  const auto step = simulate(problem, plan);
  ASSERT_TRUE(step.ok());
  EXPECT_GE(step->step_s, 2 * 3);
}

TEST(Simulator, MakesSpansOnlyWhenAsked) {
  const Problem problem = chain_of(2);
  const Plan plan = one_layer_each(2, 2, "gpipe");
  const auto step =
      simulate_step(*make_schedule(plan, false), plan, problem.model(), *problem.cost(), {0, 1});
  ASSERT_TRUE(step.ok());
  EXPECT_TRUE(step->spans.empty());
}

TEST(Simulator, TakesALongStepOfManyRanks) {
  EXPECT_NEAR(step_s(chain_of(64), one_layer_each(64, 96, "1f1b")), 3.0 * (64 + 96 - 1), 1e-6);
}

// One rank whose forwards and backwards were measured with this spread.
Result<SimulatedStep> drawn_step(double spread_s, std::uint64_t seed, int micro_batches) {
  const Problem problem = chain_of(1);
  Profile profile = problem.profile();
  LayerSample& sample = profile.devices[0].layers["l0"][0];
  sample.forward_spread_s = sample.backward_spread_s = spread_s;
  MOTLEY_ASSIGN(const CostModel cost, CostModel::make(problem.model(), problem.cluster(), profile,
                                                      1, {.moments_per_parameter = 2}));
  const Plan plan = one_layer_each(1, micro_batches, "1f1b");
  return simulate_step(*make_schedule(plan, false), plan, problem.model(), cost, {0},
                       {.seed = seed, .draw_times = true});
}

TEST(Simulator, DrawsTheSameTimesFromTheSameSeed) {
  EXPECT_EQ(drawn_step(0.1, 7, 10)->step_s, drawn_step(0.1, 7, 10)->step_s);
  EXPECT_NE(drawn_step(0.1, 7, 10)->step_s, drawn_step(0.1, 8, 10)->step_s);
  EXPECT_NEAR(drawn_step(0, 7, 10)->step_s, 30, 1e-9);
}

TEST(Simulator, DrawsTimesAroundTheMedian) {
  constexpr int kMicroBatches = 10000;
  // One standard deviation of the mean of 3 s per micro-batch is 0.148 √2 / √10000 s.
  EXPECT_NEAR(drawn_step(0.1, 1, kMicroBatches)->step_s / kMicroBatches, 3, 5 * 0.0021);
}

TEST(Simulator, DrawsNoTimeBelowAFifthOfTheMedian) {
  // Half of all draws at this spread are cut off; the sum is far above the expected value without
  // a cut-off.
  const double step = drawn_step(1000, 1, 100)->step_s;
  EXPECT_GT(step, 100 * 0.2 * 3);
  EXPECT_GT(step, 100 * 500);
}

TEST(Simulator, ReportsADeadlock) {
  const Problem problem = chain_of(2);
  const auto cost = problem.cost();
  ASSERT_TRUE(cost.ok());
  const Plan plan = one_layer_each(2, 1, "1f1b");
  Schedule schedule = *make_schedule(plan, false);
  std::erase(schedule.ranks[0], Action{ActionKind::kSendActivation, {0}, {0}});
  const auto step = simulate_step(schedule, plan, problem.model(), *cost, {0, 1});
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().code, ErrorCode::kInternal);
}

TEST(SlotsOfRanks, TakeDevicesOfOneNameInTurn) {
  Problem problem = chain_of(1);
  Cluster cluster = problem.cluster();
  cluster.machines[0].devices = {"cpu", "cpu"};
  const auto cost =
      CostModel::make(problem.model(), cluster, problem.profile(), 1, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  Plan plan;
  plan.ranks = {{"m0", "cpu"}, {"m0", "cpu"}};
  EXPECT_EQ(*slots_of_ranks(plan, *cost), (std::vector<int>{0, 1}));
  plan.ranks.push_back({"m0", "cpu"});
  EXPECT_EQ(slots_of_ranks(plan, *cost).error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley
