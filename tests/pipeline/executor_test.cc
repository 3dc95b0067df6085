#include "pipeline/execute/executor.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/pipeline/line_pipeline.h"

namespace motley {
namespace {

constexpr ChunkId kChunk0{0};
constexpr ChunkId kChunk1{1};
constexpr ChunkId kChunk2{2};
constexpr MicroId kMicro0{0};

void expect_ok(const std::vector<LinePipeline::Outcome>& outcomes) {
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->ok()) << describe(outcome->error());
}

struct Trained {
  std::vector<double> losses;     // [step]
  std::vector<LineLayer> layers;  // parameters after and gradients of the last step

  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained train(LinePipeline& pipeline) {
  Trained trained;
  for (std::int64_t step = 1; step <= 3; ++step) {
    expect_ok(pipeline.train(step));
    trained.losses.push_back(pipeline.stage(Rank{0}).loss_sum());
  }
  trained.layers = pipeline.layers();
  return trained;
}

Trained train(const Plan& plan) {
  LinePipeline pipeline(plan);
  return train(pipeline);
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

// The gradient of the tied parameter on the only rank of a plan.
float tied_gradient_alone() {
  LinePipeline pipeline(line_plan({0}));
  expect_ok(pipeline.train(1));
  const auto layers = pipeline.layers();
  return layers.front().gradient_a + layers.back().gradient_b;
}

TEST(Executor, SumsTiedGradientsOverTheRanksOfBothEnds) {
  LinePipeline pipeline(line_plan({1, 2, 0}));
  expect_ok(pipeline.train(1, /*tied=*/true));
  for (const ChunkId end : {kChunk0, kChunk2}) {
    EXPECT_EQ(pipeline.stage(end).tied_gradient()[0], tied_gradient_alone());
  }
}

// [ChunkId]: data parallel; equal and unequal shares; replicas at the ends and in the middle; ranks
// with several chunks, of which some are shared.
const std::vector<std::vector<std::vector<Replica>>> kReplicated = {
    {{{Rank{0}, 3}, {Rank{1}, 1}}},
    {{{Rank{0}, 1}, {Rank{1}, 2}, {Rank{2}, 1}}},
    {{{Rank{0}, 2}, {Rank{1}, 2}}, {{Rank{2}, 4}}},
    {{{Rank{2}, 4}}, {{Rank{0}, 1}, {Rank{1}, 3}}},
    {{{Rank{0}, 4}}, {{Rank{1}, 2}, {Rank{2}, 2}}, {{Rank{3}, 4}}},
    {{{Rank{0}, 2}, {Rank{1}, 2}}, {{Rank{2}, 3}, {Rank{3}, 1}}},
    {{{Rank{0}, 2}, {Rank{1}, 2}}, {{Rank{0}, 1}, {Rank{1}, 3}}},
    {{{Rank{0}, 2}, {Rank{1}, 2}}, {{Rank{2}, 4}}, {{Rank{0}, 4}}},
};

// Only the order of sums differs; each has a few terms, so a few roundings of 6e-8 of the largest.
void expect_near(const std::vector<LineLayer>& layers, const std::vector<LineLayer>& expected) {
  ASSERT_EQ(layers.size(), expected.size());
  float largest = 0;
  for (const LineLayer& layer : expected) {
    largest = std::max({largest, std::abs(layer.gradient_a), std::abs(layer.gradient_b)});
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_NEAR(layers[i].a, expected[i].a, 1e-6) << i;
    EXPECT_NEAR(layers[i].b, expected[i].b, 1e-6) << i;
    EXPECT_NEAR(layers[i].gradient_a, expected[i].gradient_a, 1e-5F * largest) << i;
    EXPECT_NEAR(layers[i].gradient_b, expected[i].gradient_b, 1e-5F * largest) << i;
  }
}

TEST_P(ExecutorSchedules, LearnsTheSameWithReplicas) {
  const Trained alone = train(line_plan({0}));
  for (const auto& replicas : kReplicated) {
    const Trained shared = train(replicated_line_plan(replicas, 4, GetParam()));
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      EXPECT_NEAR(shared.losses[step], alone.losses[step], 1e-5 * alone.losses[step]);
    }
    expect_near(shared.layers, alone.layers);
  }
}

TEST_P(ExecutorSchedules, EndsWithTheSameBitsOnAllReplicas) {
  for (const auto& replicas : kReplicated) {
    LinePipeline pipeline(replicated_line_plan(replicas, 4, GetParam()));
    expect_ok(pipeline.train(1));
    expect_ok(pipeline.train(2));
    for (ChunkId chunk{0}; chunk.index() < replicas.size(); ++chunk.value) {
      for (const Replica& replica : replicas[chunk.index()]) {
        EXPECT_EQ(pipeline.stage(replica.rank).layers_of(chunk),
                  pipeline.stage(chunk).layers_of(chunk));
      }
    }
  }
}

TEST(Executor, SumsTiedGradientsOnceOverReplicas) {
  const Rank both{2};
  const std::vector<std::vector<std::vector<Replica>>> tied_replicas = {
      {{{Rank{0}, 3}, {Rank{1}, 1}}},
      {{{Rank{0}, 1}, {Rank{1}, 1}, {both, 2}}, {{Rank{4}, 4}}, {{both, 2}, {Rank{3}, 2}}}};
  const float expected = tied_gradient_alone();
  for (const auto& replicas : tied_replicas) {
    const Plan plan = replicated_line_plan(replicas, 4, "1f1b");
    LinePipeline pipeline(plan);
    expect_ok(pipeline.train(1, /*tied=*/true));
    const float first_sum = pipeline.stage(Rank{0}).tied_gradient()[0];
    EXPECT_NEAR(first_sum, expected, 1e-5F * std::abs(expected));
    for (const ChunkPlan* end : {&plan.chunks.front(), &plan.chunks.back()}) {
      for (const Replica& replica : end->replicas) {
        EXPECT_EQ(pipeline.stage(replica.rank).tied_gradient()[0], first_sum);
      }
    }
  }
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

// Every stage checks the bytes beside its values.
TEST_P(ExecutorSchedules, KeepsExactBytesThroughEveryCodec) {
  for (const char* codec : {"none", "int8", "int4", "topk(0.5)", "int8|zstd(1)"}) {
    Plan plan = line_plan({0, 1, 1, 2}, 3, GetParam());
    for (ChunkPlan& chunk : plan.chunks) chunk.codec = codec;
    LinePipeline pipeline(plan);
    expect_ok(pipeline.train(1));
    expect_ok(pipeline.train(2));
  }
}

// The bits are the codec's, whoever makes the messages and reads them.
TEST_P(ExecutorSchedules, TakesMessagesThatADeviceMakesAndReads) {
  Plan plan = line_plan({0, 1, 2}, 4, GetParam());
  for (ChunkPlan& chunk : plan.chunks) chunk.codec = "fp16";
  const Trained expected = train(plan);
  for (const std::vector<int>& devices : {std::vector{0, 1, 2}, {1}, {0, 2}}) {
    LinePipeline pipeline(plan);
    for (const int rank : devices) pipeline.stage(Rank{rank}).encode_itself();
    EXPECT_EQ(train(pipeline), expected);
  }
}

// The gradients of one chunk on two ranks of these machines.
std::vector<LineLayer> summed_over(const std::vector<std::string>& machines,
                                   const std::string& gradient_codec) {
  Plan plan = replicated_line_plan({{{Rank{0}, 2}, {Rank{1}, 2}}}, 4, "1f1b");
  for (std::size_t rank = 0; rank < 2; ++rank) plan.ranks[rank].machine = machines[rank];
  LinePipeline pipeline(plan, gradient_codec);
  expect_ok(pipeline.train());
  const auto layers = pipeline.stage(Rank{0}).layers_of(kChunk0);
  EXPECT_EQ(pipeline.stage(Rank{1}).layers_of(kChunk0), layers);
  return layers;
}

TEST(Executor, RoundsSumsOfGradientsOnlyBetweenMachines) {
  const auto exact = summed_over({"a", "a"}, "none");
  EXPECT_EQ(summed_over({"a", "b"}, "none"), exact);
  EXPECT_EQ(summed_over({"a", "a"}, "fp16"), exact);
  EXPECT_NE(summed_over({"a", "b"}, "fp16"), exact);
}

TEST(Executor, RefusesAnUnknownCodecOfGradients) {
  LinePipeline pipeline(line_plan({0}), "magic");
  const auto outcome = pipeline.train()[0];
  ASSERT_FALSE(outcome->ok());
  EXPECT_EQ(outcome->error().code, ErrorCode::kConfig);
}

TEST(Executor, RoundsNothingWithinARank) {
  Plan plan = line_plan({0, 0});
  plan.chunks[0].codec = "fp16";
  EXPECT_EQ(train(plan), train(line_plan({0})));
}

INSTANTIATE_TEST_SUITE_P(Names,
                         ExecutorSchedules,
                         testing::Values("gpipe", "1f1b", "split"),
                         [](const auto& name) { return "Of_" + name.param; });

}  // namespace
}  // namespace motley
