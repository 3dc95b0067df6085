// StageTrainer with its state and votes, run by executors of ranks in threads.
#include "training/stage_trainer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <c10/core/InferenceMode.h>

#include "models/device/dtype_support.h"
#include "tests/training/stage_training.h"

namespace motley {
namespace {

using testing::HasSubstr;

Config config_with(const std::string& optimizer) {
  Config config = small_config();
  config.train.optimizer = optimizer;
  config.train.groups = {"h.0.*: lr=0.5", "*.bias: weight_decay=1"};
  return config;
}

TEST(StageTrainer, LearnsTheSameByEveryOptimizerHoweverTheModelIsCut) {
  const std::vector<Replica> first = {{Rank{0}, kMicroBatches}};
  const std::vector<Replica> second = {{Rank{1}, kMicroBatches}};
  const std::vector<Replica> third = {{Rank{2}, kMicroBatches}};
  for (const char* optimizer : optimizer_names()) {
    const Config config = config_with(optimizer);
    StageTraining alone(kAlone, config);
    expect_ok(alone.steps(3));
    for (const StageShape& shape :
         {StageShape{.chunks = {first, second}}, StageShape{.chunks = {first, second, third}}}) {
      StageTraining cut(shape, config);
      expect_ok(cut.steps(3));
      EXPECT_EQ(cut.parameters(), alone.parameters()) << optimizer;
    }
    StageTraining replicas({.chunks = {{{Rank{0}, 3}, {Rank{1}, 1}}}}, config);
    expect_ok(replicas.steps(3));
    const CopyGroup group{ChunkId{0}, {Rank{0}, Rank{1}}};
    EXPECT_EQ(replicas.rank(0).state->copy_hash(group), replicas.rank(1).state->copy_hash(group));
  }
}

// A factor of 0 leaves parameters unchanged, also matrices of Muon.
TEST(StageTrainer, TrainsGroupsByTheirFactors) {
  for (const char* optimizer : {"adamw", "muon"}) {
    Config config = config_with(optimizer);
    config.train.groups = {"h.1.*: lr=0"};
    StageTraining alone(kAlone, config);
    const auto untrained = alone.parameters();
    expect_ok(alone.steps(2));
    for (const auto& [name, values] : alone.parameters()) {
      EXPECT_EQ(values == untrained.at(name), name.starts_with("h.1.")) << optimizer << name;
    }
  }
}

TEST(StageTrainer, LearnsTheSameHoweverTheModelIsCut) {
  StageTraining alone(kAlone);
  const auto untrained = alone.parameters();
  expect_ok(alone.steps(3));
  const auto expected = alone.parameters();
  EXPECT_NE(expected, untrained);
  const std::vector<Replica> first = {{Rank{0}, kMicroBatches}};
  const std::vector<Replica> second = {{Rank{1}, kMicroBatches}};
  const std::vector<StageShape> shapes = {
      {.chunks = {first, first, first}},                 // passed directly, without frames
      {.chunks = {first, second}},                       // the tied parameter on two ranks
      {.chunks = {first, second, first}},                // both, and the tied parameter on one
      {.chunks = {first, second}, .schedule = "split"},  // backward in two parts
      {.chunks = {first, first}, .schedule = "split"},   // passed directly, backward in two parts
      {.chunks = {first, second}, .recompute = true},    // forward twice
  };
  for (const StageShape& shape : shapes) {
    StageTraining cut(shape);
    expect_ok(cut.steps(3));
    EXPECT_EQ(cut.parameters(), expected) << shape.chunks.size() << " chunks, " << shape.schedule;
    EXPECT_EQ(cut.rank(0).voter->outcome().loss, alone.rank(0).voter->outcome().loss);
  }
}

Config config_in(const std::string& precision) {
  Config config = small_config();
  config.train.precision = precision;
  return config;
}

bool computes_in(at::ScalarType type) {
  return computes_products_in(tested_device(), type);
}

TEST(StageTrainer, LearnsTheSameInBf16HoweverTheModelIsCut) {
  if (!computes_in(at::kBFloat16)) GTEST_SKIP() << "there is no bf16 here";
  StageTraining alone(kAlone, config_in("bf16"));
  expect_ok(alone.steps(3));
  StageTraining exact(kAlone);
  expect_ok(exact.steps(3));
  const double loss = exact.rank(0).voter->outcome().loss;
  EXPECT_NE(alone.rank(0).voter->outcome().loss, loss);
  EXPECT_NEAR(alone.rank(0).voter->outcome().loss, loss, 0.01 * loss);
  const std::vector<Replica> first = {{Rank{0}, kMicroBatches}};
  const std::vector<Replica> second = {{Rank{1}, kMicroBatches}};
  for (const StageShape& shape : {StageShape{.chunks = {first, second}},
                                  StageShape{.chunks = {first, second}, .schedule = "split"},
                                  StageShape{.chunks = {first, second}, .recompute = true}}) {
    StageTraining cut(shape, config_in("bf16"));
    expect_ok(cut.steps(3));
    EXPECT_EQ(cut.parameters(), alone.parameters()) << shape.schedule;
  }
}

// With a scale at which every gradient overflows, all ranks skip the same steps until it is small
// enough, change nothing meanwhile, and then train as with a suitable initial scale.
TEST(StageTrainer, RecoversFromOverflowOfFp16OnAllRanksAtOnce) {
  if (!computes_in(at::kHalf)) GTEST_SKIP() << "there is no fp16 here";
  const StageShape shape{.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}};
  StageTraining pipeline(shape, config_in("fp16"), GradientScale{0x1p24, 0});
  const auto untrained = pipeline.parameters();
  int skipped = 0;
  for (; skipped < 24; ++skipped) {
    expect_ok(pipeline.steps(1));
    const bool is_skipped = pipeline.rank(0).voter->outcome().skipped;
    EXPECT_EQ(pipeline.rank(1).voter->outcome().skipped, is_skipped);
    EXPECT_EQ(pipeline.rank(0).voter->progress().gradient_scale,
              pipeline.rank(1).voter->progress().gradient_scale);
    if (!is_skipped) break;
    EXPECT_EQ(pipeline.parameters(), untrained);
  }
  EXPECT_GT(skipped, 2);
  EXPECT_LT(skipped, 24);
  const double fitting = 0x1p24 / static_cast<double>(1 << skipped);
  EXPECT_EQ(pipeline.rank(0).voter->progress().gradient_scale, (GradientScale{fitting, 1}));
  EXPECT_EQ(pipeline.rank(0).voter->progress().optimizer_updates, 1);
  EXPECT_NE(pipeline.parameters(), untrained);
  const double loss = pipeline.rank(0).voter->outcome().loss;
  EXPECT_NEAR(loss, std::log(61), 0.2);
}

TEST(StageTrainer, LearnsTheSameInFp16HoweverTheModelIsCut) {
  if (!computes_in(at::kHalf)) GTEST_SKIP() << "there is no fp16 here";
  StageTraining alone(kAlone, config_in("fp16"));
  expect_ok(alone.steps(3));
  StageTraining cut({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}},
                    config_in("fp16"));
  expect_ok(cut.steps(3));
  EXPECT_EQ(cut.parameters(), alone.parameters());
}

TEST(StageTrainer, KeepsReplicasEqual) {
  StageTraining replicas({.chunks = {{{Rank{0}, 3}, {Rank{1}, 1}}}});
  expect_ok(replicas.steps(3));
  const CopyGroup group{ChunkId{0}, {Rank{0}, Rank{1}}};
  EXPECT_EQ(replicas.rank(0).state->copy_hash(group), replicas.rank(1).state->copy_hash(group));
}

// One bit of a parameter differs on one replica. Rank 1 may only see that rank 0 is lost.
TEST(StageTrainer, FindsAReplicaWithAnotherParameter) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  StageTraining replicas({.chunks = {{{Rank{0}, 2}, {Rank{1}, 2}}}});
  float& value = replicas.rank(1).trainer->held().front().parameters.front().values[5];
  value = std::nextafter(value, 1.0F);
  const auto ended = replicas.steps(1);
  for (const auto& each : ended) ASSERT_FALSE(each.ok());
  EXPECT_EQ(ended[0].error().code, ErrorCode::kInternal);
  EXPECT_THAT(ended[0].error().what, HasSubstr("chunk 0"));
}

TEST(StageTrainer, FindsAnotherCopyOfTheTiedParameter) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  StageTraining pipeline({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}});
  for (const HeldParameter& parameter : pipeline.rank(1).trainer->held().back().parameters) {
    if (parameter.spec.tied_use) parameter.values[3] += 1;
  }
  const auto ended = pipeline.steps(1);
  for (const auto& each : ended) ASSERT_FALSE(each.ok());
  EXPECT_EQ(ended[0].error().code, ErrorCode::kInternal);
  EXPECT_THAT(ended[0].error().what, HasSubstr("the tied parameter"));
}

TEST(StageTrainer, ChangesNothingInAnEvaluation) {
  StageTraining alone(kAlone);
  const auto before = alone.parameters();
  expect_ok(alone.evaluate());
  EXPECT_EQ(alone.parameters(), before);
  EXPECT_EQ(alone.rank(0).voter->tally().count, kMicroBatches * 16);
  EXPECT_NEAR(alone.rank(0).voter->outcome().loss, std::log(61), 0.2);
  EXPECT_EQ(alone.rank(0).voter->progress().step, 0);
}

TEST(StageTrainer, HoldsDataOnlyWhereTheModelBegins) {
  StageTraining pipeline({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}});
  EXPECT_NE(pipeline.rank(0).trainer->source(), nullptr);
  EXPECT_EQ(pipeline.rank(1).trainer->source(), nullptr);
}

// Passed values stay valid as long as they are needed, even if all others release their owner.
TEST(StageTrainer, KeepsTheOwnerOfWhatItIsHanded) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  StageTraining two({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{0}, kMicroBatches}}}});
  const c10::InferenceMode no_recording;
  StageTrainer& trainer = *two.rank(0).trainer;
  trainer.begin({});
  const MicroId micro{0};
  (void)trainer.load(micro);
  OwnedBoundary output = trainer.forward(ChunkId{0}, micro);
  ASSERT_EQ(static_cast<std::int64_t>(output.values.size()),
            trainer.boundary_size(ChunkId{0}).floats);
  const std::weak_ptr<const void> owner = output.owner;
  trainer.hand_over_locally({ValueKind::kActivation, ChunkId{1}, micro}, std::move(output));
  EXPECT_FALSE(owner.expired());
  (void)trainer.forward(ChunkId{1}, micro);
  EXPECT_GT(trainer.loss().count, 0);
  trainer.begin({});
  EXPECT_TRUE(owner.expired());
}

TEST(StageTrainer, RefusesValuesOfAnotherSize) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // LibTorch has its own threads
  StageTraining two({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{0}, kMicroBatches}}}});
  std::vector<float> few(3);
  EXPECT_DEATH(two.rank(0).trainer->hand_over_locally(
                   {ValueKind::kActivation, ChunkId{1}, MicroId{0}}, {{few, nullptr, {}}, {}}),
               "3 floats for a boundary");
}

}  // namespace
}  // namespace motley
