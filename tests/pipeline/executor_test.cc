#include "pipeline/executor.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/pipeline/line_pipeline.h"

namespace motley {
namespace {

constexpr ChunkId kChunk0{0};
constexpr ChunkId kChunk1{1};
constexpr MicroId kMicro0{0};

void expect_ok(const std::vector<LinePipeline::Outcome>& outcomes) {
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->ok()) << describe(outcome->error());
}

struct Trained {
  std::vector<double> losses;     // [step]
  std::vector<LineLayer> layers;  // parameters after and gradients of the last step

  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained train(const Plan& plan) {
  LinePipeline pipeline(plan);
  Trained trained;
  for (std::int64_t step = 1; step <= 3; ++step) {
    expect_ok(pipeline.train(step));
    trained.losses.push_back(pipeline.stage(Rank{0}).loss_sum());
  }
  trained.layers = pipeline.layers();
  return trained;
}

// [ChunkId] -> rank: one to six chunks on one to four ranks, also several on one rank.
const std::vector<std::vector<int>> kPlacements = {
    {0},       {0, 0},       {0, 1},       {1, 0},          {0, 1, 2},          {0, 1, 2, 3},
    {0, 0, 1}, {0, 1, 1, 0}, {0, 1, 0, 1}, {2, 0, 1, 2, 0}, {0, 1, 2, 0, 1, 2}, {3, 2, 1, 0},
};

class ExecutorSchedules : public testing::TestWithParam<std::string> {};

TEST_P(ExecutorSchedules, GivesTheSameBitsWhereverTheChunksAre) {
  for (const int micro_batches : {1, 2, 5}) {
    const Trained alone = train(line_plan({0}, micro_batches, "gpipe"));
    EXPECT_TRUE(std::isfinite(alone.losses.back()));
    EXPECT_NE(alone.layers[0].gradient_a, 0);
    for (const auto& placement : kPlacements) {
      EXPECT_EQ(train(line_plan(placement, micro_batches, GetParam())), alone)
          << micro_batches << " micro-batches, " << testing::PrintToString(placement);
    }
  }
}

TEST_P(ExecutorSchedules, EveryRankStepsOnceWithTheSameLoss) {
  LinePipeline pipeline(line_plan({0, 1, 2}, 4, GetParam()));
  expect_ok(pipeline.train());
  for (Rank rank{0}; rank.value < 3; ++rank.value) {
    EXPECT_TRUE(pipeline.stage(rank).stepped());
    EXPECT_EQ(pipeline.stage(rank).loss_sum(), pipeline.stage(Rank{0}).loss_sum());
  }
}

INSTANTIATE_TEST_SUITE_P(Names,
                         ExecutorSchedules,
                         testing::Values("gpipe", "1f1b"),
                         [](const auto& name) { return "Of_" + name.param; });

TEST(Executor, EvaluatesWithoutGradientsOrAStep) {
  const auto evaluate = [](const std::vector<int>& placement) {
    const Plan plan = line_plan(placement);
    LinePipeline pipeline(plan);
    expect_ok(pipeline.run(forward_schedule(schedule_input(plan, false)), {1, false, 0}));
    EXPECT_FALSE(pipeline.stage(Rank{0}).stepped());
    for (const LineLayer& layer : pipeline.layers()) EXPECT_EQ(layer.gradient_a, 0);
    return pipeline.stage(Rank{0}).loss_sum();
  };
  const double alone = evaluate({0});
  EXPECT_GT(alone, 0);
  for (const auto& placement : kPlacements) EXPECT_EQ(evaluate(placement), alone);
}

TEST(Executor, GivesEachTiedRankTheGradientOfTheOther) {
  LinePipeline pipeline(line_plan({1, 2, 0}));
  expect_ok(pipeline.train(1, /*tied=*/true));
  const LineStage& first = pipeline.stage(kChunk0);
  const LineStage& last = pipeline.stage(ChunkId{2});
  EXPECT_NE(first.tied(), last.tied());
  EXPECT_EQ(first.other_tied(), last.tied());
  EXPECT_EQ(last.other_tied(), first.tied());
}

// Half precision keeps 11 bits.
void expect_rounded_to_half(const LineValues& sent, const LineValues& arrived) {
  int changed = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_NEAR(arrived[i], sent[i], std::abs(sent[i]) * std::ldexp(1.0F, -11));
    changed += arrived[i] != sent[i] ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

TEST(Executor, RoundsBothDirectionsOfABoundaryWithAnFp16Codec) {
  Plan plan = line_plan({0, 1}, 1);
  plan.chunks[0].codec = "fp16";
  LinePipeline pipeline(plan);
  expect_ok(pipeline.train());
  LineStage& first = pipeline.stage(kChunk0);
  LineStage& last = pipeline.stage(kChunk1);
  expect_rounded_to_half(first.output(kChunk0, kMicro0), last.input(kChunk1, kMicro0));
  expect_rounded_to_half(last.input_gradient(kChunk1, kMicro0),
                         first.output_gradient(kChunk0, kMicro0));
}

TEST(Executor, RoundsNothingWithinARank) {
  Plan plan = line_plan({0, 0});
  plan.chunks[0].codec = "fp16";
  EXPECT_EQ(train(plan), train(line_plan({0})));
}

}  // namespace
}  // namespace motley
