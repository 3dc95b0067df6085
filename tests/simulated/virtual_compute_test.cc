// VirtualCompute in pipelines and all-reduces of ranks in threads, on a clock that does not wait.
#include "simulated/virtual_compute.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "partitioner/search/planner.h"
#include "tests/simulated/simulated_rank.h"
#include "tests/support/dealt_plan.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

ModelSpec small_model() {
  return six_layers(/*width=*/32, /*context=*/16, /*vocab=*/300);
}

constexpr VirtualSpeed kSpeed{.tokens_per_s = 1000};

struct Shape {
  std::vector<std::vector<Replica>> chunks;  // [ChunkId]
  std::string schedule = "1f1b";
};

// Eight micro-batches; rank 0 is alone on its machine.
Plan plan_of(const ModelSpec& model, const Shape& shape) {
  Plan plan = dealt_plan(model, shape.chunks);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    plan.ranks[r] = {.machine = r == 0 ? "a" : "b", .device = "virtual"};
  }
  plan.micro_batches = 8;
  plan.schedule = shape.schedule;
  return plan;
}

struct Ran {
  StepOutcome outcome;
  CheckpointState progress;
  double slept_s = 0;
  std::vector<std::vector<float>> gradients;  // [ChunkId]; empty if another rank holds it
};

// Runs `steps` steps; returns every rank's results, [Rank].
std::vector<Ran> train(const Plan& plan, const ModelSpec& model, int steps) {
  std::vector<Ran> ran(plan.ranks.size());
  RankGroup group("inproc", plan.rank_count());
  group.run([&](Rank self) {
    Ran& mine = ran[self.index()];
    SimulatedRank rank(plan, model, self, kSpeed, group.at(self));
    rank.run(steps);
    mine.outcome = rank.voter().outcome();
    mine.progress = rank.voter().progress();
    mine.slept_s = rank.slept_s();
    for (ChunkId chunk{0}; chunk.value < plan.chunk_count(); ++chunk.value) {
      const auto& values = plan.chunks[chunk.index()].is_on(self) ? rank.compute().gradients(chunk)
                                                                  : std::span<float>();
      mine.gradients.emplace_back(values.begin(), values.end());
    }
  });
  return ran;
}

void expect_steps_count(const Shape& shape) {
  const ModelSpec model = small_model();
  for (const Ran& rank : train(plan_of(model, shape), model, 3)) {
    EXPECT_EQ(rank.outcome.tokens, 8 * 16);
    EXPECT_FALSE(rank.outcome.skipped);
    EXPECT_EQ(rank.outcome.loss, 0);
    EXPECT_EQ(rank.progress.step, 3);
    EXPECT_EQ(rank.progress.samples, 24U);
  }
}

TEST(VirtualCompute, StepsInPipelinesAndReplicas) {
  expect_steps_count({{{{Rank{0}, 8}}}});
  expect_steps_count({{{{Rank{0}, 8}}, {{Rank{1}, 8}}}});
  expect_steps_count({{{{Rank{0}, 8}}, {{Rank{1}, 8}}, {{Rank{0}, 8}}}});
  expect_steps_count({{{{Rank{0}, 8}}, {{Rank{1}, 8}}}, "split"});
  expect_steps_count({{{{Rank{0}, 6}, {Rank{1}, 2}}}});
  expect_steps_count({{{{Rank{0}, 8}}, {{Rank{1}, 3}, {Rank{2}, 5}}}, "split"});
}

TEST(VirtualCompute, WaitsAloneAsLongAsItsTokensTake) {
  const ModelSpec model = small_model();
  const auto ran = train(plan_of(model, {{{{Rank{0}, 8}}}}), model, 5);
  EXPECT_NEAR(ran[0].slept_s, 5 * 8 * 16 / kSpeed.tokens_per_s, 1e-6);
}

TEST(VirtualCompute, SplittingBackwardChangesNoTime) {
  const ModelSpec model = small_model();
  const auto whole = train(plan_of(model, {{{{Rank{0}, 8}}, {{Rank{1}, 8}}}}), model, 1);
  const auto split = train(plan_of(model, {{{{Rank{0}, 8}}, {{Rank{1}, 8}}}, "split"}), model, 1);
  for (std::size_t r = 0; r < 2; ++r) EXPECT_NEAR(whole[r].slept_s, split[r].slept_s, 1e-9);
}

TEST(VirtualCompute, WaitsTwiceForForwardWhereItIsComputedAgain) {
  const ModelSpec model = small_model();
  Plan plan = plan_of(model, {{{{Rank{0}, 8}}}});
  const double once_s = train(plan, model, 1)[0].slept_s;
  plan.chunks[0].recompute = true;
  double forward_s = 0;
  for (const auto& [signature, samples] :
       virtual_profile(model, kSpeed, virtual_job(eight_samples(), model), {1}).layers) {
    const auto has = [&](const LayerSpec& layer) { return layer.signature == signature; };
    forward_s +=
        samples[0].forward_s * static_cast<double>(std::ranges::count_if(model.layers, has));
  }
  EXPECT_NEAR(train(plan, model, 1)[0].slept_s, once_s + 8 * forward_s, 1e-9);
}

// Replicas hold the same all-reduced gradients, with new values in each step and one value for
// each parameter that is not tied.
TEST(VirtualCompute, SumsGradientsOfTrueSize) {
  const ModelSpec model = small_model();
  const Plan plan = plan_of(model, {{{{Rank{0}, 6}, {Rank{1}, 2}}}});
  const auto one = train(plan, model, 1);
  const auto two = train(plan, model, 2);
  const auto tied = static_cast<std::size_t>(300 * 32);
  EXPECT_EQ(one[0].gradients[0].size(), static_cast<std::size_t>(model.parameter_count()) - tied);
  EXPECT_EQ(one[0].gradients, one[1].gradients);
  EXPECT_NE(one[0].gradients, two[0].gradients);
  EXPECT_EQ(std::ranges::count(one[0].gradients[0], 0.0F), 0);
}

// During the last backward, from the end to the beginning.
TEST(VirtualCompute, GradientsBecomeFinalLayerByLayer) {
  const ModelSpec model = small_model();
  const Plan plan = plan_of(model, {{{{Rank{0}, 6}, {Rank{1}, 2}}}});
  double slept_s = 0;
  VirtualCompute compute(eight_samples(), model, plan, Rank{0}, kSpeed,
                         std::make_unique<StallingTime>(slept_s));
  compute.begin({});
  std::vector<std::size_t> firsts;
  std::vector<double> times_s;
  const auto on_ready = [&](std::size_t first) {
    firsts.push_back(first);
    times_s.push_back(slept_s);
    const auto final = compute.gradients(ChunkId{0}).subspan(first);
    EXPECT_EQ(std::ranges::count(final, 0.0F), 0) << first;
  };
  (void)compute.backward(ChunkId{0}, MicroId{0}, BackwardPart::kWhole, on_ready);
  EXPECT_EQ(firsts.size(), model.layers.size());
  EXPECT_EQ(firsts.back(), 0U);
  EXPECT_TRUE(std::ranges::is_sorted(firsts, std::greater<>()));
  EXPECT_TRUE(std::ranges::is_sorted(times_s));
  EXPECT_LT(times_s.front(), times_s.back());
}

TEST(VirtualCompute, KeepsNoGradientThatIsNotSummed) {
  const ModelSpec model = small_model();
  for (const Ran& rank : train(plan_of(model, {{{{Rank{0}, 8}}, {{Rank{1}, 8}}}}), model, 1)) {
    for (const auto& gradients : rank.gradients) EXPECT_TRUE(gradients.empty());
  }
}

}  // namespace
}  // namespace motley
