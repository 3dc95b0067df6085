// The planner's choices other than the cuts: the micro-batch and the codecs.
#include <fmt/format.h>

#include <gmock/gmock.h>

#include "partitioner/period_search/exact_search.h"
#include "partitioner/search/planner.h"
#include "tests/partitioner/pipelines.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A layer that only replicas can share; its all-reduce takes 4 s, or 2 s with half the bytes.
Problem one_shared_layer() {
  Problem problem;
  problem.layers = {{.work_s = 1, .parameters = 1'000'000}};
  problem.machines = {{1}, {1}};
  problem.link = {1e6, 0};
  problem.options.gradient_codecs = {"none", kHalf};
  return problem;
}

// Because of the pipeline's bubble the smallest micro-batch is best in itself; messages cost too
// much for a smaller one. `work_s`: of each of two layers.
Problem pipeline_with_a_bubble(double work_s) {
  Problem problem{.layers = {{work_s, 1000, 1}, {work_s, 1000, 1}}, .machines = {{}, {}}};
  problem.options.stages = 2;
  problem.options.global_batch = 32;
  return problem;
}

TEST(PlannerChoices, TakesTheUsualMicroBatchUnlessItCostsMuch) {
  Problem problem = pipeline_with_a_bubble(1);
  const auto best = problem.plan();
  ASSERT_TRUE(best.ok()) << describe(best.error());
  EXPECT_EQ(best->micro_batch, 1);
  problem.options.usual_micro_batch = 4;
  const auto usual = problem.plan();
  ASSERT_TRUE(usual.ok()) << describe(usual.error());
  EXPECT_EQ(usual->micro_batch, 4);
  EXPECT_GT(usual->predicted_step_s, best->predicted_step_s);
  problem.options.usual_micro_batch = 16;
  const auto refused = problem.plan();
  ASSERT_TRUE(refused.ok()) << describe(refused.error());
  EXPECT_EQ(refused->micro_batch, 1);
  EXPECT_THAT(refused->notes, Contains(HasSubstr("instead of the default 16: a step takes")));
}

// Also not together with a coarser codec, whose own gain is below the threshold.
TEST(PlannerChoices, TakesTheUsualMicroBatchWhateverACoarserCodecIsToGain) {
  Problem problem = pipeline_with_a_bubble(1);
  const auto best = problem.plan();
  ASSERT_TRUE(best.ok()) << describe(best.error());
  problem.options.usual_micro_batch = 4;
  const auto usual = problem.plan();
  ASSERT_TRUE(usual.ok()) << describe(usual.error());
  ASSERT_LT(best->predicted_step_s, 0.95 * usual->predicted_step_s);
  problem.options.coarser = {{{kHalf}, {}, 0.03}};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->micro_batch, 4);
  EXPECT_EQ(plan->predicted_step_s, usual->predicted_step_s);
}

TEST(PlannerChoices, TakesTheUsualMicroBatchForTheShortestStepsWhateverItsShare) {
  Problem problem = pipeline_with_a_bubble(1e-4);
  const auto best = problem.plan();
  ASSERT_TRUE(best.ok()) << describe(best.error());
  problem.options.usual_micro_batch = 16;
  const auto usual = problem.plan();
  ASSERT_TRUE(usual.ok()) << describe(usual.error());
  EXPECT_EQ(usual->micro_batch, 16);
  EXPECT_GT(usual->predicted_step_s, 1.15 * best->predicted_step_s);
}

TEST(PlannerChoices, TakesASmallerMicroBatchWhereTheUsualOneDoesNotFit) {
  Problem problem{.layers = {{1, 1000, 1, 1 << 20}, {1, 1000, 1, 1 << 20}},
                  .machines = {{.memory_bytes = 3 << 20}}};
  problem.options.global_batch = 4;
  problem.options.usual_micro_batch = 4;
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_LT(plan->micro_batch, 4);
  EXPECT_THAT(plan->notes, Contains(HasSubstr("a plan with the default does not fit")));
}

// With more devices than the replica search covers, the whole model on all devices is one
// candidate of each size.
TEST(PlannerChoices, TakesTheSizeThatIsBestForManyReplicas) {
  Problem problem;
  problem.layers = {{.work_s = 1}};
  problem.machines.resize(kExactSlotsMax + 4);
  problem.options.global_batch = 4 * static_cast<int>(problem.machines.size());
  Profile profile = problem.profile();
  for (DeviceProfile& device : profile.devices) {
    LayerSample of_four = device.layers["l0"].front();
    of_four.micro_batch = 4;
    of_four.forward_s *= 3;
    of_four.backward_s *= 3;
    device.layers["l0"].push_back(of_four);
  }
  const auto plan = make_plan(problem.model(), problem.cluster(), profile, problem.options);
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->micro_batch, 4);
  EXPECT_EQ(plan->chunks.front().replicas.size(), problem.machines.size());
  EXPECT_NEAR(plan->predicted_step_s, 3, 1e-9);
}

TEST(UsualMicroBatch, DependsOnTheModelAndTheGlobalBatchAlone) {
  EXPECT_EQ(usual_micro_batch(128, 32), 2);
  EXPECT_EQ(usual_micro_batch(256, 16), 2);
  EXPECT_EQ(usual_micro_batch(256, 9), 3);
  EXPECT_EQ(usual_micro_batch(1024, 32), 1);
  EXPECT_EQ(usual_micro_batch(16, 8), 4);
  EXPECT_EQ(usual_micro_batch(1, 8), 8);
}

TEST(PlannerChoices, ChoosesTheCodecOfGradientsByTime) {
  Problem problem = one_shared_layer();
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->rank_count(), 2);
  EXPECT_EQ(plan->gradient_codec, kHalf);
  problem.options.gradient_codecs = {"none"};
  const auto exact = problem.plan();
  ASSERT_TRUE(exact.ok());
  EXPECT_NEAR(exact->predicted_step_s - plan->predicted_step_s, 2, 0.01);
}

TEST(PlannerChoices, HasReplicasOnlyWhereWhatSumsLeaveOutFitsToo) {
  Problem problem = one_shared_layer();
  problem.link = {1e9, 0};  // two machines are faster
  problem.options.gradient_codecs = {kHalf};
  const auto cost = problem.cost();
  ASSERT_TRUE(cost.ok()) << describe(cost.error());
  const std::int64_t without = cost->memory_bytes(0, 0, 1, 1, 1);
  const std::int64_t left_out = CostModel::MemoryParts::resident(4 * 1'000'000);
  const auto ranks_with = [&](std::int64_t memory_bytes) {
    for (MachineSketch& machine : problem.machines) machine.memory_bytes = memory_bytes;
    const auto plan = problem.plan();
    EXPECT_TRUE(plan.ok()) << describe(plan.error());
    return plan.ok() ? plan->rank_count() : 0;
  };
  EXPECT_EQ(ranks_with(without + left_out + 1), 2);
  EXPECT_EQ(ranks_with(without + left_out - 2), 1);
  problem.options.process_state.has_residual = false;
  EXPECT_EQ(ranks_with(without + 1), 2);
}

TEST(PlannerChoices, LeavesGradientsAloneWhereACodecTakesLongerOrWasNotMeasured) {
  Problem slow = one_shared_layer();
  for (MachineSketch& machine : slow.machines) machine.half_s_per_float = 2e-6;
  EXPECT_EQ(slow.plan()->gradient_codec, "none");
  Problem unknown = one_shared_layer();
  unknown.options.gradient_codecs = {"none", "int8"};
  EXPECT_EQ(unknown.plan()->gradient_codec, "none");
}

// Two layers on two machines; the boundary takes 20 s per sample in each direction, or half of it.
Problem one_slow_boundary() {
  Problem problem;
  problem.layers = {{.work_s = 6, .output_floats = 5'000'000}, {.work_s = 6}};
  problem.machines = {{1}, {1}};
  problem.link = {1e6, 0};
  problem.options.stages = 2;
  return problem;
}

// The step time if these codecs are permitted in addition to "none".
double step_with(Problem problem, std::vector<CoarserCodecs> coarser) {
  problem.options.coarser = std::move(coarser);
  const auto plan = problem.plan();
  return plan.ok() ? plan->predicted_step_s : 0;
}

TEST(PlannerChoices, TakesACoarserCodecOnlyForTheGainThatIsAskedFor) {
  Problem boundary = one_slow_boundary();
  const double fine_s = step_with(boundary, {});
  const double gain = 1 - step_with(boundary, {{{kHalf}, {}, 0}}) / fine_s;
  ASSERT_GT(gain, 0.01);

  boundary.options.coarser = {{{kHalf}, {}, gain - 0.005}};
  const auto taken = boundary.plan();
  ASSERT_TRUE(taken.ok()) << describe(taken.error());
  EXPECT_EQ(taken->chunks[0].codec, kHalf);
  EXPECT_THAT(taken->notes, Contains(AllOf(HasSubstr("activations as half"),
                                           HasSubstr(fmt::format("{:.4g} s", fine_s)))));

  boundary.options.coarser = {{{kHalf}, {}, gain + 0.005}};
  const auto refused = boundary.plan();
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->chunks[0].codec, "none");
  EXPECT_THAT(refused->notes, Not(Contains(HasSubstr("rounding"))));
}

TEST(PlannerChoices, SaysThatSumsAreRoundedMore) {
  Problem problem = one_shared_layer();
  problem.options.gradient_codecs = {"none"};
  problem.options.coarser = {{{}, {kHalf}, 0.03}};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->gradient_codec, kHalf);
  EXPECT_THAT(plan->notes, Contains(HasSubstr("gradients as half")));
}

// A second kind of coarser codec must reach its gain on top of the first.
TEST(PlannerChoices, ComparesEachCoarserCodecWithThoseBeforeIt) {
  Problem problem = one_slow_boundary();
  problem.options.coarser = {{{kHalf}, {}, 0.01}, {{"never-measured"}, {}, 0}};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->chunks[0].codec, kHalf);
  EXPECT_THAT(plan->notes, Not(Contains(HasSubstr("never-measured"))));
}

}  // namespace
}  // namespace motley
