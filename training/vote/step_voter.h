// StepVoter: a rank's part in the vote and in the following step, whatever the rank holds. Tracks
// the training progress. Used by the compute thread alone.
//
// Learning rate and bias corrections come from rank 0's C library. Each rank also computes them,
// only to check that the received ones are plausible. At the first step of a session, and then
// every kCompareEvery steps, the ranks hash the parameters of which they hold copies, as they are
// before the step. Every vote carries the last hashes, so its size is constant.
//
// In rounds (plan/rounds/rounds_plan.h) each island clips and scales by its own norm and number of
// tokens, and copies are compared at the beginnings of rounds. If any island's gradient is not
// finite, all skip the step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "pipeline/execute/stage_votes.h"
#include "plan/rounds/rounds_plan.h"
#include "record/step_outcome.h"
#include "run_config/config.h"
#include "run_config/schedule_length.h"
#include "training/optimizer/optimizer.h"
#include "training/vote/batch_loss.h"
#include "training/vote/optimized_state.h"
#include "training/vote/vote.h"

namespace motley {

// The momentum-corrected part of a model (training/momentum_correction/corrected_allreduces.h),
// whose gradients are clipped before their all-reduce. The rest is clipped at train.clip times the
// root of its share of the parameters.
struct CorrectedPart {
  std::vector<bool> layers = {};  // [layer]; empty = none has
  double parameter_share = 0;
};

class StepVoter final : public StageVotes {
 public:
  static constexpr std::int64_t kCompareEvery = 100;  // steps

  // `loss`: of the batch on this rank; called once a batch, by vote(). It and `state` must outlive
  // the voter. `progress`: after the last step of the session before. `is_to_end`: whether this
  // rank was asked to end the session; called once a step. `is_save_due`: whether a checkpoint is
  // due by this rank's clock; called once a step, on rank 0 only. `corrected`: the same on all
  // ranks. REQUIRES: a validated configuration.
  StepVoter(
      const TrainConfig& train,
      int layer_count,
      std::vector<CopyGroup> copies,
      Rank self,
      std::function<BatchLoss()> loss,
      OptimizedState& state,
      CheckpointState progress,
      std::function<bool()> is_to_end = [] { return false; },
      std::function<bool()> is_save_due = [] { return false; },
      CorrectedPart corrected = {},
      std::optional<RoundsPlan> rounds = {});

  [[nodiscard]] std::size_t vote_bytes_max() const override;
  std::vector<std::byte> vote(const BatchPosition& position) override;
  // kInternal also if rank 0's factors are not plausible for the step.
  [[nodiscard]] Result<void> count_votes(const std::vector<std::vector<std::byte>>& votes) override;
  StepEffect step() override;

  // Of the last voted batch. In an evaluation only loss, tokens and accuracy are meaningful.
  [[nodiscard]] const StepOutcome& outcome() const { return outcome_; }

  // The votes behind outcome().
  [[nodiscard]] const Tally& tally() const { return tally_; }

  // The training progress after the last step.
  [[nodiscard]] const CheckpointState& progress() const { return progress_; }

  // This rank's island's share of the round's tokens so far; before any, an equal one.
  [[nodiscard]] double round_share() const;

  // Whether the last step is the last one before the learning rate decays (wsd).
  [[nodiscard]] bool is_before_decay() const {
    return progress_.step > 0 && progress_.step == last_stable_step(train_);
  }

  // Replaces the record of evaluations in the progress.
  void set_evaluations(const EvaluationRecord& record) { progress_.evaluations = record; }

 private:
  [[nodiscard]] bool is_compared() const;
  [[nodiscard]] StepScope scope() const;
  // The votes that this rank's gradients are scaled by.
  [[nodiscard]] const IslandTally& own_tally() const;
  [[nodiscard]] double gradient_norm() const;
  void add_to_round();
  [[nodiscard]] StepFactors own_factors() const;
  [[nodiscard]] Result<void> check_factors(const StepFactors& factors) const;

  const TrainConfig train_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const VoteRules rules_;
  const double clip_;  // for what is not momentum-corrected; 0 = none
  const Rank self_;
  const std::function<BatchLoss()> loss_;
  OptimizedState& state_;
  CheckpointState progress_;
  const std::function<bool()> is_to_end_;
  const std::function<bool()> is_save_due_;
  const std::optional<RoundsPlan> rounds_;
  const std::size_t island_;  // of this rank
  const std::int64_t first_step_;
  std::int64_t compared_at_ = 0;      // the step of the last comparison
  std::int64_t counted_round_;        // 0 = none
  std::vector<double> round_counts_;  // [island] of the steps of counted_round_ so far
  BatchPosition position_;
  std::vector<std::uint64_t> copy_hashes_;  // as of the last comparison
  Tally tally_;
  StepFactors factors_;
  StepOutcome outcome_;
};

}  // namespace motley
