#include "training/rounds/outer_optimizer.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include "tests/training/held_values.h"
#include "training/optimizer/optimizer.h"
#include "training/stage_state.h"

namespace motley {
namespace {

using ::testing::ElementsAre;

// One rank of an island, with one chunk of one parameter of three values.
struct Member {
  HeldValues held;
  std::unique_ptr<StageState> state;
  double share = 1;
  int changes = 0;
  std::unique_ptr<OuterOptimizer> outer;

  Member(OuterOptimizer::Rule rule, double island_share, bool is_counted = true)
      : share(island_share) {
    held.add(ChunkId{0}, 0, "a");
    std::vector<HeldChunk> chunks = held.chunks();
    chunks.front().parameters.front().is_counted = is_counted;
    state = std::make_unique<StageState>(chunks, make_optimizer(plain_sgd()), "");
    outer = std::make_unique<OuterOptimizer>(
        *state, plain_sgd(), /*tied_across_ranks=*/false, /*computes_start=*/false, rule,
        [this] { return share; }, [this] { ++changes; });
  }

  std::span<float> pseudo_gradient() { return outer->pseudo_gradients(ChunkId{0}); }
};

// All-reduces the members' pseudo-gradients exactly.
void synchronise(const std::vector<Member*>& members) {
  std::vector<float> sum(3);
  for (Member* const member : members) {
    member->outer->offer();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += member->pseudo_gradient()[i];
  }
  for (Member* const member : members) {
    std::ranges::copy(sum, member->pseudo_gradient().begin());
    member->outer->adopt();
  }
}

TEST(OuterOptimizer, AveragesWithoutMomentum) {
  Member one({1, 0}, 0.75);
  Member other({1, 0}, 0.25);
  for (Member* const member : {&one, &other}) member->outer->begin_round();
  one.held.values(0) = {2, -2, 3};
  other.held.values(0) = {5, 2, 3};
  synchronise({&one, &other});
  EXPECT_THAT(one.held.values(0), ElementsAre(2.75F, -1, 3));
  EXPECT_EQ(other.held.values(0), one.held.values(0));
  EXPECT_EQ(one.changes, 2);  // before the offer and before the new parameters
}

// Against the formulas in double: velocity = momentum velocity + mean; anchor -= rate (mean +
// momentum velocity).
TEST(OuterOptimizer, TakesNesterovSteps) {
  constexpr double kLr = 0.7;
  constexpr double kMomentum = 0.6;
  Member member({kLr, kMomentum}, 1);
  double anchor = 1;
  double velocity = 0;
  for (int round = 0; round < 5; ++round) {
    member.outer->begin_round();
    const double moved = anchor - 0.125 * (round + 1);
    member.held.values(0) = {static_cast<float>(moved), -2, 3};
    synchronise({&member});
    const double mean = anchor - moved;
    velocity = kMomentum * velocity + mean;
    anchor -= kLr * (mean + kMomentum * velocity);
    EXPECT_NEAR(member.held.values(0)[0], anchor, 1e-6) << round;
  }
}

// The copies of an island are equal; only one of them contributes.
TEST(OuterOptimizer, CountsEachIslandOnce) {
  Member one({1, 0}, 0.5);
  Member copy({1, 0}, 0.5, /*is_counted=*/false);
  Member other({1, 0}, 0.5);
  for (Member* const member : {&one, &copy, &other}) member->outer->begin_round();
  one.held.values(0) = {3, -2, 3};
  copy.held.values(0) = {3, -2, 3};
  other.held.values(0) = {5, -2, 3};
  synchronise({&one, &copy, &other});
  EXPECT_THAT(copy.held.values(0), ElementsAre(4, -2, 3));
}

TEST(OuterOptimizer, AveragesStatisticsWhateverTheRule) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "running_mean").spec.statistic_momentum = 0.1;
  StageState state(held.chunks(), make_optimizer(plain_sgd()), "");
  OuterOptimizer outer(
      state, plain_sgd(), false, false, {0.7, 0.9}, [] { return 1.0; }, [] {});
  outer.begin_round();
  held.values(0) = {2, -2, 7};
  outer.offer();
  outer.adopt();
  EXPECT_THAT(held.values(0), ElementsAre(2, -2, 7));
}

// A difference of variances may be negative, so statistics are the average alone.
TEST(OuterOptimizer, LeavesOutTheStepsSinceTheOfferOfStatistics) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "running_var").spec.statistic_momentum = 0.1;
  StageState state(held.chunks(), make_optimizer(plain_sgd()), "");
  OuterOptimizer outer(
      state, plain_sgd(), false, false, {0.7, 0.9, true}, [] { return 1.0; }, [] {});
  outer.begin_round();
  held.values(0) = {2, 3, 7};
  outer.offer();
  held.values(0) = {1, 1, 1};
  outer.adopt();
  EXPECT_THAT(held.values(0), ElementsAre(2, 3, 7));
}

// With plain averaging an island goes on with its own parameters. What it trains while its offer is
// on the way stays on top of the new anchor, and is in its next offer.
TEST(OuterOptimizer, KeepsTheStepsSinceTheOffer) {
  Member one({.lr = 1, .momentum = 0, .overlaps = true}, 0.75);
  Member other({.lr = 1, .momentum = 0, .overlaps = true}, 0.25);
  const std::vector<Member*> members = {&one, &other};
  for (Member* const member : members) member->outer->begin_round();
  one.held.values(0) = {2, -2, 3};
  other.held.values(0) = {5, 2, 3};
  const auto sum = [&] {
    std::vector<float> mean(3);
    for (Member* const member : members) {
      member->outer->offer();
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += member->pseudo_gradient()[i];
    }
    return mean;
  };
  const auto adopt = [&](const std::vector<float>& mean) {
    for (Member* const member : members) {
      std::ranges::copy(mean, member->pseudo_gradient().begin());
      member->outer->adopt();
    }
  };
  const std::vector<float> mean = sum();
  one.held.values(0) = {2, -3, 3};
  other.held.values(0) = {5.5F, 2, 3};
  adopt(mean);
  EXPECT_THAT(one.held.values(0), ElementsAre(2.75F, -2, 3));
  EXPECT_THAT(other.held.values(0), ElementsAre(3.25F, -1, 3));
  const CopyGroup group{ChunkId{0}, {Rank{0}, Rank{1}}};
  ASSERT_TRUE(one.outer->anchor_hash(group).has_value());
  EXPECT_EQ(one.outer->anchor_hash(group), other.outer->anchor_hash(group));
  EXPECT_THAT(sum(), ElementsAre(-0.125F, 0.75F, 0));
}

// An island alone expects the anchor that it gets, so its steps since the offer are all that
// differs from it; against the formulas in double.
TEST(OuterOptimizer, GoesOnFromTheAnchorThatItExpects) {
  Member member({.lr = 0.7, .momentum = 0.6, .overlaps = true}, 1);
  double anchor = 1;
  double velocity = 0;
  double progress = 0;
  for (int round = 0; round < 4; ++round) {
    member.outer->begin_round();
    const double moved = anchor + progress - 0.5;
    member.held.values(0)[0] = static_cast<float>(moved);
    member.outer->offer();
    const double own = anchor - moved;
    velocity = 0.6 * velocity + own;
    anchor -= 0.7 * (own + 0.6 * velocity);
    EXPECT_NEAR(member.held.values(0)[0], anchor, 1e-5) << round;
    progress = 0.25 * round;
    member.held.values(0)[0] += static_cast<float>(progress);
    member.outer->adopt();
    EXPECT_NEAR(member.held.values(0)[0], anchor + progress, 1e-5) << round;
  }
}

// For an evaluation, the anchor takes the place of the parameters.
TEST(OuterOptimizer, ExchangesParametersAndAnchor) {
  Member member({.lr = 1, .momentum = 0, .overlaps = true}, 1);
  member.outer->begin_round();
  member.held.values(0) = {4, 4, 4};
  member.outer->exchange_anchor();
  EXPECT_THAT(member.held.values(0), ElementsAre(1, -2, 3));
  member.outer->exchange_anchor();
  EXPECT_THAT(member.held.values(0), ElementsAre(4, 4, 4));
  EXPECT_THAT(member.outer->anchor_views().front().values, ElementsAre(1, -2, 3));
}

// Without steps between them, the parameters are the anchor to the bit.
TEST(OuterOptimizer, DoesTheSameWhetherOrNotItMayOverlap) {
  Member with({.lr = 0.7, .momentum = 0.6, .overlaps = true}, 1);
  Member without({.lr = 0.7, .momentum = 0.6}, 1);
  for (int round = 0; round < 3; ++round) {
    for (Member* const member : {&with, &without}) {
      member->outer->begin_round();
      for (float& value : member->held.values(0)) value *= 1.1F;
      synchronise({member});
    }
    EXPECT_EQ(with.held.values(0), without.held.values(0)) << round;
  }
}

// A second call within a round keeps the anchor: a session may begin within one.
TEST(OuterOptimizer, KeepsTheAnchorThroughARound) {
  Member member({1, 0}, 1);
  member.outer->begin_round();
  member.held.values(0) = {4, 4, 4};
  member.outer->begin_round();
  member.outer->offer();
  EXPECT_THAT(member.pseudo_gradient(), ElementsAre(-3, -6, -1));
}

}  // namespace
}  // namespace motley
