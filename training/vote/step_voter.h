// StepVoter: a rank's part in the vote and in the step that follows, whatever the rank holds.
// Counts where the training stands. Used by the compute thread alone.
//
// Learning rate and bias corrections come from rank 0's C library: each rank computes them too, but
// only to see that what it hears can be meant. At the first step of a session and then every
// kCompareEvery steps the ranks hash anew the parameters of which they hold copies, as they are
// before the step; every vote carries the last hashes, so that its size is always the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "job/config.h"
#include "pipeline/execute/stage_votes.h"
#include "training/optimizer/optimizer.h"
#include "training/vote/optimized_state.h"
#include "training/vote/step_outcome.h"
#include "training/vote/vote.h"

namespace motley {

// Of a model, what has gradients that are pushes (training/pushes/pushed_sums.h): they were clipped
// before they were summed. What is left of train.clip by the share of the parameters, the root of
// it, is for the rest.
struct PushedPart {
  std::vector<bool> layers = {};  // [layer]; empty = none has
  double parameter_share = 0;
};

class StepVoter final : public StageVotes {
 public:
  static constexpr std::int64_t kCompareEvery = 100;  // steps

  // `loss`: of the batch on this rank; asked once a batch, when vote() is called. It and `state`
  // must outlive the voter. `progress`: after the last step of the session before. `is_to_end`:
  // whether this rank was asked to end the session; asked once a step. `is_save_due`: whether by
  // this rank's clock it is time for a checkpoint; asked once a step on rank 0 and nowhere else.
  // `pushed`: the same on all ranks.
  // REQUIRES: a validated configuration.
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
      PushedPart pushed = {});

  [[nodiscard]] std::size_t vote_bytes_max() const override;
  std::vector<std::byte> vote(const BatchPosition& position) override;
  // kInternal also where rank 0's factors cannot be those of the step.
  [[nodiscard]] Result<void> count_votes(const std::vector<std::vector<std::byte>>& votes) override;
  StepEffect step() override;

  // Of the last voted batch.
  [[nodiscard]] const StepOutcome& outcome() const { return outcome_; }

  // Where the training stands: after the last step.
  [[nodiscard]] const CheckpointState& progress() const { return progress_; }

 private:
  [[nodiscard]] bool is_compared() const;
  [[nodiscard]] StepFactors own_factors() const;
  [[nodiscard]] Result<void> check_factors(const StepFactors& factors) const;

  const TrainConfig train_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const VoteRules rules_;
  const double clip_;  // of what is not pushed; 0 = none
  const Rank self_;
  const std::function<BatchLoss()> loss_;
  OptimizedState& state_;
  CheckpointState progress_;
  const std::function<bool()> is_to_end_;
  const std::function<bool()> is_save_due_;
  const std::int64_t first_step_;
  BatchPosition position_;
  std::vector<std::uint64_t> copy_hashes_;  // when they were last compared
  Tally tally_;
  StepFactors factors_;
  StepOutcome outcome_;
};

}  // namespace motley
