#include "training/vote/step_voter.h"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/training/held_values.h"
#include "training/optimizer/lr_schedule.h"
#include "training/stage_state.h"

namespace motley {
namespace {

using testing::HasSubstr;

// Records its calls; has one layer.
class Remembering final : public OptimizedState {
 public:
  double squared_norm = 4;
  std::vector<StepFactors> updates;
  std::vector<float> scales;
  std::vector<float> corrected_scales;
  int cleared = 0;

  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override { return {{0, squared_norm}}; }

  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& /*group*/) override { return 7; }

  void update(const StepFactors& factors, const GradientScales& step_scales) override {
    updates.push_back(factors);
    scales.push_back(step_scales.clipped);
    corrected_scales.push_back(step_scales.corrected);
  }

  void clear_gradients() override { ++cleared; }
};

BatchPosition step_at(std::int64_t step) {
  return {.step = step};
}

// A single rank.
struct Alone {
  BatchLoss loss{8, 20, 6};
  Remembering state;
  StepVoter voter;

  explicit Alone(const TrainConfig& train = plain_sgd(), CheckpointState progress = {})
      : voter(
            train, 1, {}, Rank{0}, [this] { return loss; }, state, std::move(progress)) {}

  Result<void> count(const BatchPosition& position) {
    return voter.count_votes({voter.vote(position)});
  }

  StepEffect take(std::int64_t step) {
    const auto counted = count(step_at(step));
    EXPECT_TRUE(counted.ok()) << describe(counted.error());
    return voter.step();
  }
};

// Momentum-corrected gradients contain many steps' gradients: their norm is not that of the step,
// and is not clipped.
TEST(StepVoter, ClipsOnlyWhatIsNotPushed) {
  TrainConfig train = plain_sgd();
  train.clip = 0.25;

  struct TwoLayers final : OptimizedState {
    GradientScales scales;

    [[nodiscard]] std::vector<LayerNorm2> layer_norms() override { return {{0, 64}, {1, 4e6}}; }

    [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& /*group*/) override { return 7; }

    void update(const StepFactors& /*factors*/, const GradientScales& step_scales) override {
      scales = step_scales;
    }

    void clear_gradients() override {}
  } state;

  StepVoter voter(
      train, 2, {}, Rank{0},
      [] {
        return BatchLoss{8, 20, 6};
      },
      state, {}, [] { return false; }, [] { return false; },
      {.layers = {false, true}, .parameter_share = 0.75});
  ASSERT_TRUE(voter.count_votes({voter.vote(step_at(1))}).ok());
  EXPECT_EQ(voter.step(), StepEffect::kUpdated);
  // A quarter of the parameters have half of the bound; the norm of their mean gradient is 1.
  EXPECT_EQ(state.scales.clipped, 0.125F / 8);
  EXPECT_EQ(state.scales.corrected, 1.0F / 8);
  EXPECT_DOUBLE_EQ(voter.outcome().grad_norm, std::sqrt(4e6 + 64) / 8);
}

TEST(StepVoter, TakesTheStepThatWasVoted) {
  Alone rank;
  EXPECT_EQ(rank.take(1), StepEffect::kUpdated);
  EXPECT_EQ(rank.voter.outcome().loss, 2.5);
  EXPECT_EQ(rank.voter.tally().count, 8);
  EXPECT_EQ(rank.voter.outcome().accuracy, 0.75);
  EXPECT_EQ(rank.voter.outcome().grad_norm, 0.25);
  EXPECT_EQ(rank.voter.outcome().lr, 0.5);
  EXPECT_FALSE(rank.voter.outcome().skipped);
  EXPECT_EQ(rank.state.scales, (std::vector<float>{1.0F / 8}));
  EXPECT_EQ(rank.state.cleared, 1);
  EXPECT_EQ(rank.voter.progress().step, 1);
  EXPECT_EQ(rank.voter.progress().samples, 4U);
  EXPECT_EQ(rank.voter.progress().tokens, 8U);
  EXPECT_EQ(rank.voter.progress().optimizer_updates, 1);
}

TEST(StepVoter, ClipsTheNormOfTheMeanGradient) {
  TrainConfig train = plain_sgd();
  train.clip = 0.125;
  Alone rank(train);
  EXPECT_EQ(rank.take(1), StepEffect::kUpdated);
  EXPECT_EQ(rank.state.scales, (std::vector<float>{0.5F / 8}));
}

TEST(StepVoter, SkipsAStepThatIsNotFinite) {
  Alone rank;
  rank.state.squared_norm = std::numeric_limits<double>::infinity();
  EXPECT_EQ(rank.take(1), StepEffect::kSkipped);
  EXPECT_TRUE(rank.voter.outcome().skipped);
  EXPECT_TRUE(rank.state.updates.empty());
  EXPECT_EQ(rank.state.cleared, 1);
  EXPECT_EQ(rank.voter.progress().step, 1);
  EXPECT_EQ(rank.voter.progress().samples, 4U);
  EXPECT_EQ(rank.voter.progress().optimizer_updates, 0);
}

// Without targets nothing changes, and it is no error: only the step count advances.
TEST(StepVoter, ChangesNothingInAStepWithoutTargets) {
  Alone rank(plain_sgd(), {.gradient_scale = GradientScale{64, 5}});
  rank.loss = {0, 0, 0};
  rank.state.squared_norm = 0;
  EXPECT_EQ(rank.take(1), StepEffect::kWithoutTargets);
  EXPECT_TRUE(std::isnan(rank.voter.outcome().loss));
  EXPECT_FALSE(rank.voter.outcome().accuracy.has_value());
  EXPECT_EQ(rank.voter.outcome().grad_norm, 0);
  EXPECT_FALSE(rank.voter.outcome().skipped);
  EXPECT_TRUE(rank.state.updates.empty());
  EXPECT_EQ(rank.state.cleared, 1);
  EXPECT_EQ(rank.voter.progress().step, 1);
  EXPECT_EQ(rank.voter.progress().samples, 4U);
  EXPECT_EQ(rank.voter.progress().tokens, 0U);
  EXPECT_EQ(rank.voter.progress().optimizer_updates, 0);
  EXPECT_EQ(rank.voter.progress().gradient_scale, (GradientScale{64, 5}));
}

// A non-finite gradient is an error, with or without targets.
TEST(StepVoter, SkipsAStepWithoutTargetsThatIsNotFinite) {
  Alone rank;
  rank.loss = {0, 0};
  rank.state.squared_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(rank.take(1), StepEffect::kSkipped);
}

TEST(StepVoter, HasNoLossOfAnEvaluationWithoutTargets) {
  Alone rank;
  rank.loss = {0, 0};
  ASSERT_TRUE(rank.count({.step = 1, .training = false}).ok());
  EXPECT_TRUE(std::isnan(rank.voter.outcome().loss));
  EXPECT_EQ(rank.voter.tally().count, 0);
}

// Every rank derives the same scale from the votes.
TEST(StepVoter, HalvesTheGradientScaleWithASkippedStep) {
  Alone rank(plain_sgd(), {.gradient_scale = GradientScale{64, 5}});
  EXPECT_EQ(rank.take(1), StepEffect::kUpdated);
  EXPECT_EQ(rank.voter.outcome().gradient_scale, 64);
  EXPECT_EQ(rank.voter.progress().gradient_scale, (GradientScale{64, 6}));
  rank.state.squared_norm = std::numeric_limits<double>::infinity();
  EXPECT_EQ(rank.take(2), StepEffect::kSkipped);
  EXPECT_EQ(rank.voter.outcome().gradient_scale, 64);
  EXPECT_EQ(rank.voter.progress().gradient_scale, (GradientScale{32, 0}));
  rank.state.squared_norm = 4;
  EXPECT_EQ(rank.take(3), StepEffect::kUpdated);
  EXPECT_EQ(rank.voter.outcome().gradient_scale, 32);
}

TEST(StepVoter, HasNoGradientScaleBesideFp16) {
  Alone rank;
  EXPECT_EQ(rank.take(1), StepEffect::kUpdated);
  EXPECT_EQ(rank.voter.outcome().gradient_scale, std::nullopt);
  EXPECT_EQ(rank.voter.progress().gradient_scale, std::nullopt);
}

TEST(StepVoter, StaysWhereItIsForAnEvaluation) {
  Alone rank;
  ASSERT_TRUE(rank.count({.step = 1, .training = false}).ok());
  EXPECT_EQ(rank.voter.outcome().loss, 2.5);
  EXPECT_EQ(rank.voter.progress().step, 0);
}

// Skipped steps do not count; those of the earlier session do.
TEST(StepVoter, CorrectsByTheNumberOfUpdates) {
  TrainConfig train = plain_sgd();
  train.optimizer = "adamw";
  Alone rank(train, {.step = 5, .optimizer_updates = 3});
  EXPECT_EQ(rank.take(6), StepEffect::kUpdated);
  const auto expected = make_optimizer(train)->corrections(4);
  EXPECT_EQ(rank.state.updates.front().corrections, expected);
}

// Ranks 0 and 1 hold one chunk each; the vote of rank 0 may be changed before rank 1 gets it.
struct TwoRanks {
  TrainConfig train;
  BatchLoss loss{8, 20};
  Remembering state;
  StepVoter second;
  Vote of_first;

  explicit TwoRanks(const TrainConfig& config)
      : train(config),
        second(config, 2, {}, Rank{1}, [this] { return loss; }, state, {}),
        of_first{0, 0, {}, {{1, 1}}, {learning_rate(config, 1)}, {}} {
    for (const double correction : make_optimizer(config)->corrections(1)) {
      of_first.factors.push_back(correction);
    }
  }

  Result<void> count() {
    return second.count_votes({encode_vote(of_first), second.vote(step_at(1))});
  }
};

TrainConfig adamw() {
  TrainConfig train = plain_sgd();
  train.optimizer = "adamw";
  return train;
}

// With a C library that rounds differently: its last bits are used, whatever this rank's are.
TEST(StepVoter, UsesTheFactorsOfRank0) {
  for (std::size_t i = 0; i < 3; ++i) {
    TwoRanks ranks(adamw());
    double& factor = ranks.of_first.factors[i];
    factor = std::nextafter(factor, 2);
    const auto counted = ranks.count();
    ASSERT_TRUE(counted.ok()) << describe(counted.error());
    EXPECT_EQ(ranks.second.step(), StepEffect::kUpdated);
    const StepFactors& used = ranks.state.updates.front();
    EXPECT_EQ((std::vector<double>{used.lr, used.corrections[0], used.corrections[1]}),
              ranks.of_first.factors);
    EXPECT_EQ(ranks.second.outcome().lr, ranks.of_first.factors[0]);
  }
}

TEST(StepVoter, RefusesFactorsThatCannotBeMeant) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < 3; ++i) {
    for (const double bad : {kNan, HUGE_VAL, -1.0, 0.0, 0.51}) {
      TwoRanks ranks(adamw());
      ranks.of_first.factors[i] = bad;
      const auto counted = ranks.count();
      ASSERT_FALSE(counted.ok()) << i << ": " << bad;
      EXPECT_EQ(counted.error().code, ErrorCode::kInternal);
      EXPECT_THAT(counted.error().what, HasSubstr("the update of step 1 differs"));
    }
  }
}

// Ranks 0 and 1 hold copies of the same chunk, with real parameters.
struct Copies {
  static constexpr int kRanks = 2;
  HeldValues held[kRanks];
  BatchLoss loss[kRanks] = {{8, 20}, {8, 20}};
  bool is_save_due[kRanks] = {};
  int asked[kRanks] = {};  // how often a rank was asked whether a save is due
  std::vector<StageState> states;
  std::vector<std::unique_ptr<StepVoter>> voters;

  explicit Copies(std::int64_t steps_done = 0) {
    states.reserve(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      held[rank].add(ChunkId{0}, 0, "a").is_first = rank == 0;
      states.emplace_back(held[rank].chunks(), make_optimizer(plain_sgd()), "");
      voters.push_back(std::make_unique<StepVoter>(
          plain_sgd(), 1, std::vector<CopyGroup>{{ChunkId{0}, {Rank{0}, Rank{1}}}}, Rank{rank},
          [this, rank] { return loss[rank]; }, states[static_cast<std::size_t>(rank)],
          CheckpointState{.step = steps_done}, [] { return false; },
          [this, rank] {
            ++asked[rank];
            return is_save_due[rank];
          }));
    }
  }

  void flip_a_bit_of(int rank) {
    float& value = held[rank].values(0)[1];
    value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
  }

  // Each rank's result of the votes on a step; it executes the step if they are valid.
  std::vector<Result<void>> take(std::int64_t step) {
    std::vector<std::vector<std::byte>> votes;
    for (const auto& voter : voters) {
      votes.push_back(voter->vote(step_at(step)));
      EXPECT_LE(votes.back().size(), voter->vote_bytes_max());
    }
    std::vector<Result<void>> counted;
    for (const auto& voter : voters) {
      counted.push_back(voter->count_votes(votes));
      if (counted.back().ok()) voter->step();
    }
    return counted;
  }
};

void expect_found(const std::vector<Result<void>>& counted) {
  for (const auto& each : counted) {
    ASSERT_FALSE(each.ok());
    EXPECT_EQ(each.error().code, ErrorCode::kInternal);
    EXPECT_THAT(each.error().what, HasSubstr("chunk 0"));
    EXPECT_THAT(each.error().cause, HasSubstr("on rank 0"));
    EXPECT_THAT(each.error().cause, HasSubstr("on rank 1"));
    EXPECT_THAT(each.error().remedy, HasSubstr("check the memory"));
  }
}

void expect_taken(const std::vector<Result<void>>& counted) {
  for (const auto& each : counted) EXPECT_TRUE(each.ok()) << describe(each.error());
}

TEST(StepVoter, SavesOnAllRanksWhenRank0SaysSo) {
  for (const bool on_first : {false, true}) {
    for (const bool on_second : {false, true}) {
      Copies copies;
      copies.is_save_due[0] = on_first;
      copies.is_save_due[1] = on_second;
      expect_taken(copies.take(1));
      for (const auto& voter : copies.voters) {
        EXPECT_EQ(voter->tally().saves, on_first);
        EXPECT_FALSE(voter->tally().ends);
      }
      EXPECT_EQ(copies.asked[0], 1);
      EXPECT_EQ(copies.asked[1], 0);
    }
  }
}

TEST(StepVoter, AsksForNoSaveWithAnEvaluation) {
  Copies copies;
  copies.is_save_due[0] = true;
  (void)copies.voters[0]->vote({.step = 1, .training = false});
  EXPECT_EQ(copies.asked[0], 0);
}

TEST(StepVoter, FindsACopyThatDiffersAtTheFirstStepOfASession) {
  for (const std::int64_t steps_done : {0, 41}) {
    Copies copies(steps_done);
    copies.flip_a_bit_of(1);
    expect_found(copies.take(steps_done + 1));
  }
}

TEST(StepVoter, FindsACopyThatDiffersWithinAHundredSteps) {
  Copies copies;
  for (std::int64_t step = 1; step < StepVoter::kCompareEvery; ++step) {
    expect_taken(copies.take(step));
    if (step == 1) copies.flip_a_bit_of(0);
  }
  expect_found(copies.take(StepVoter::kCompareEvery));
}

TEST(StepVoter, FindsNothingWhereCopiesStayEqual) {
  Copies copies;
  for (std::int64_t step = 1; step <= 2 * StepVoter::kCompareEvery; ++step) {
    for (HeldValues& held : copies.held) held.gradients(0) = {0.1F, -0.2F, 0.3F};
    expect_taken(copies.take(step));
  }
  EXPECT_EQ(copies.held[0].values(0), copies.held[1].values(0));
}

// Two islands of a rank each, in a round of six steps.
class IslandVoters {
 public:
  explicit IslandVoters(std::int64_t overlap_steps, const CheckpointState& progress = {})
      : rounds_{.islands = {{Rank{0}}, {Rank{1}}}, .steps = 6, .overlap_steps = overlap_steps} {
    states_.reserve(2);
    for (int rank = 0; rank < 2; ++rank) {
      held_[rank].add(ChunkId{0}, 0, "a");
      states_.emplace_back(held_[rank].chunks(), make_optimizer(plain_sgd()), "");
      voters_.push_back(std::make_unique<StepVoter>(
          plain_sgd(), 1, std::vector<CopyGroup>{}, Rank{rank},
          [this, rank] { return loss_[rank]; }, states_.back(), progress, [] { return false; },
          [] { return false; }, CorrectedPart{}, rounds_));
    }
  }

  // With these numbers of tokens.
  void take(std::int64_t step, double first, double second) {
    loss_[0] = {first, 1};
    loss_[1] = {second, 1};
    std::vector<std::vector<std::byte>> votes;
    for (const auto& voter : voters_) votes.push_back(voter->vote(step_at(step)));
    for (const auto& voter : voters_) {
      const auto counted = voter->count_votes(votes);
      EXPECT_TRUE(counted.ok()) << describe(counted.error());
      voter->step();
    }
  }

  [[nodiscard]] const StepVoter& first() const { return *voters_.front(); }

 private:
  const RoundsPlan rounds_;
  HeldValues held_[2];
  BatchLoss loss_[2];
  std::vector<StageState> states_;
  std::vector<std::unique_ptr<StepVoter>> voters_;
};

// A session that begins within a round, where an offer was adopted, weighs the islands as before.
TEST(StepVoter, CountsTheTokensOfARoundOverSessions) {
  IslandVoters whole(2);
  for (std::int64_t step = 1; step <= 8; ++step) {
    whole.take(step, static_cast<double>(step), 3);
  }
  IslandVoters resumed(2, whole.first().progress());
  whole.take(9, 5, 4);
  resumed.take(9, 5, 4);
  EXPECT_EQ(whole.first().round_share(), 20.0 / 30);
  EXPECT_EQ(resumed.first().round_share(), 20.0 / 30);
  EXPECT_EQ(resumed.first().progress().round_tokens, (std::vector<double>{20, 10}));
  whole.take(13, 1, 3);
  EXPECT_EQ(whole.first().round_share(), 0.25);
}

TEST(StepVoter, SavesNoTokensOfRoundsWithoutOverlap) {
  IslandVoters voters(0);
  voters.take(1, 4, 4);
  EXPECT_TRUE(voters.first().progress().round_tokens.empty());
}

}  // namespace
}  // namespace motley
