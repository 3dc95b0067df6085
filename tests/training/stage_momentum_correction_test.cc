// StageState with momentum correction.
#include <gmock/gmock.h>

#include "tests/checkpoint/fixture.h"
#include "tests/training/held_values.h"
#include "training/stage_state.h"

namespace motley {
namespace {

using Floats = std::vector<float>;
using ::testing::ElementsAre;

TrainConfig momentum_sgd() {
  TrainConfig train = plain_sgd();
  train.momentum = 0.5;
  return train;
}

StageState state_of(const HeldValues& held) {
  return {held.chunks(), make_optimizer(momentum_sgd()), ""};
}

std::vector<std::string> names(const std::vector<TensorView>& views) {
  std::vector<std::string> names;
  for (const TensorView& view : views) names.push_back(view.name);
  return names;
}

// The saved state of two replicas of "a", and a moment of 1.
class StageMomentumCorrection : public ::testing::Test {
 protected:
  StageMomentumCorrection() {
    const std::vector<TensorView> parameters = {{"a", {3}, values_}};
    const std::vector<TensorView> moments = {{"momentum/a", {3}, moment_},
                                             {"unsent.0/a", {3}, unsent_[0]},
                                             {"unsent.1/a", {3}, unsent_[1]},
                                             {"velocity.0/a", {3}, velocity_[0]},
                                             {"velocity.1/a", {3}, velocity_[1]}};
    const auto shard = write_shard({folder_.path(), "", 1}, 0, 1, parameters, moments);
    EXPECT_TRUE(shard.ok());
    const auto committed =
        commit_checkpoint(folder_.path(), "", {.step = 1}, {*shard}, Json(), Json());
    EXPECT_TRUE(committed.ok());
    reader_.emplace(CheckpointReader::open(*committed).value());
  }

  const Floats values_ = {0, 0, 0};
  const Floats moment_ = {1, 1, 1};
  const Floats unsent_[2] = {{4, 0, 0}, {0, 8, 0}};
  const Floats velocity_[2] = {{2, 0, 0}, {2, 0, 6}};
  testing::TempFolder folder_;
  std::optional<CheckpointReader> reader_;
};

TEST_F(StageMomentumCorrection, AreSavedByHolderBesideThoseThatAreNone) {
  HeldValues held;
  HeldParameter& corrected = held.add(ChunkId{0}, 0, "a");
  corrected.corrected = true;
  corrected.member = 2;
  held.add(ChunkId{1}, 1, "b");
  StageState state = state_of(held);
  EXPECT_TRUE(state.has_corrected());
  EXPECT_THAT(names(state.residual_views()), ElementsAre("unsent.2/a"));
  EXPECT_THAT(names(state.velocity_views()), ElementsAre("velocity.2/a"));
}

TEST_F(StageMomentumCorrection, ComeBackToTheirHolderOrAsTheSumOfAll) {
  HeldValues held;
  HeldParameter& corrected = held.add(ChunkId{0}, 0, "a");
  corrected.corrected = true;
  corrected.member = 1;
  StageState state = state_of(held);
  ASSERT_TRUE(
      state.load_correction_state(*reader_, ResidualKind::kVelocity, FeedbackScope::kSelf).ok());
  EXPECT_EQ(held.gradients(0), velocity_[1]);
  ASSERT_TRUE(
      state.load_correction_state(*reader_, ResidualKind::kUnsent, FeedbackScope::kAll).ok());
  EXPECT_EQ(held.gradients(0), (Floats{4, 8, 0}));
}

// Whatever the gradients of the next steps are, the parameters move as far as with momentum
// correction: by the unsent values once, and by the rest of each velocity.
TEST_F(StageMomentumCorrection, GoOnAsTheOptimizersMomentumWhereSumsAreNone) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a");
  held.values(0) = values_;
  StageState state = state_of(held);
  ASSERT_TRUE(state.load_moments(*reader_).ok());
  ASSERT_TRUE(state.end_momentum_correction(*reader_, 0.5F, /*tokens=*/2).ok());
  // The velocities add up to 4, 0, 6, and a gradient is multiplied by one half.
  EXPECT_THAT(state.moment_views().front().values, ElementsAre(3, 1, 4));
  for (int step = 0; step < 40; ++step) {
    state.update({.lr = 1}, {.clipped = 0.5F});
    state.clear_gradients();
  }
  EXPECT_THAT(held.values(0), ElementsAre(::testing::FloatEq(-3 - 4 / 2),
                                          ::testing::FloatEq(-1 - 8 / 2), ::testing::FloatEq(-4)));
}

TEST_F(StageMomentumCorrection, MoveAsFarAsTheyAreWithWeightDecaysMomentumAlone) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a").corrected = true;
  StageState state = state_of(held);
  for (int step = 0; step < 2; ++step) {
    held.gradients(0) = {8, 0, 4};
    state.update({.lr = 0.5}, {.clipped = 1000, .corrected = 0.25});
  }
  // From 1, -2, 3; with momentum it would be 2.5 times as far.
  EXPECT_THAT(held.values(0), ElementsAre(-1, -2, 2));
}

}  // namespace
}  // namespace motley
