// StateSaver: saves what a rank holds beside the steps that follow (checkpoint/shard_writer.h), and
// tells the launcher when it is written. Used by the compute thread alone.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/save/shard_writer.h"
#include "comm/frames/frame_link.h"
#include "compression/feedback/gradient_compressor.h"
#include "protocol/launcher_channel.h"
#include "training/stage_state.h"
#include "training/vote/optimized_state.h"
#include "worker/train/save_space.h"
#include "worker/train/save_timer.h"
#include "worker/train/training_loop.h"

namespace motley {

// The state as a step changes it: whoever reads it beside the step is told first.
class CopyBeforeUpdate final : public OptimizedState {
 public:
  // `before_change` must be callable as long as it lives.
  CopyBeforeUpdate(OptimizedState& state, std::function<void()> before_change)
      : state_(state), before_change_(std::move(before_change)) {}

  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override { return state_.layer_norms(); }

  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& group) override {
    return state_.copy_hash(group);
  }

  void update(const StepFactors& factors, const GradientScales& scales) override {
    before_change_();
    state_.update(factors, scales);
  }

  // On a device it ends the views of all that is held.
  void clear_gradients() override {
    before_change_();
    state_.clear_gradients();
  }

 private:
  OptimizedState& state_;
  const std::function<void()> before_change_;
};

class StateSaver final : public ShardSaver {
 public:
  struct Parts {
    StageState& state;
    ShardWriter& writer;
    SaveTimer& timer;  // begins anew with each save
    FrameLink& link;
    EventSink& events;
    // Adds to the gradients what sums of gradients kept; false where they keep nothing of the kind.
    std::function<bool(Kept)> add_kept;
    std::function<const CheckpointState&()> progress;
    std::function<Deadline()> deadline;          // of what the ranks tell each other
    std::function<std::uint64_t()> spare_bytes;  // of memory
  };

  // All that is lent must outlive it.
  StateSaver(SavingRank self, Parts parts) : self_(std::move(self)), parts_(std::move(parts)) {}

  [[nodiscard]] Result<void> save() override;

  void finish() override { parts_.writer.finish(); }

  // The last one that a save was asked for, whatever became of it; 0 = none.
  [[nodiscard]] std::int64_t last_step() const { return last_step_; }

 private:
  Result<void> begin(ShardContents contents);

  const SavingRank self_;
  const Parts parts_;
  std::int64_t last_step_ = 0;
};

}  // namespace motley
