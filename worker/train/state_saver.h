// StateSaver: saves a rank's state concurrently with the following steps
// (checkpoint/save/shard_writer.h), and reports the result to the launcher and in the folder. Used
// by the compute thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/save/shard_writer.h"
#include "comm/frames/frame_link.h"
#include "protocol/launcher_channel.h"
#include "training/stage_state.h"
#include "training/vote/optimized_state.h"
#include "worker/train/save_space.h"
#include "worker/train/save_timer.h"
#include "worker/train/training_loop.h"

namespace motley {

// Calls `before_change` before a step changes the state, for a reader that is concurrent with the
// step.
class CopyBeforeUpdate final : public OptimizedState {
 public:
  using AnchorHash = std::function<std::optional<std::uint64_t>(const CopyGroup&)>;

  // Both must be callable for its whole lifetime. anchor_hash: of copies that are compared in place
  // of the parameters, if it has a value.
  CopyBeforeUpdate(
      OptimizedState& state,
      std::function<void()> before_change,
      AnchorHash anchor_hash = [](const CopyGroup& /*group*/) { return std::nullopt; })
      : state_(state),
        before_change_(std::move(before_change)),
        anchor_hash_(std::move(anchor_hash)) {}

  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override { return state_.layer_norms(); }

  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& group) override {
    const std::optional<std::uint64_t> of_anchor = anchor_hash_(group);
    return of_anchor ? *of_anchor : state_.copy_hash(group);
  }

  void update(const StepFactors& factors, const GradientScales& scales) override {
    before_change_();
    state_.update(factors, scales);
  }

  // On a device this invalidates all views of the state.
  void clear_gradients() override {
    before_change_();
    state_.clear_gradients();
  }

 private:
  OptimizedState& state_;
  const std::function<void()> before_change_;
  const AnchorHash anchor_hash_;
};

// What a shard has of the rounds.
struct RoundViews {
  std::vector<TensorView> state;                      // beside the moments
  std::optional<std::vector<TensorView>> parameters;  // nullopt: those of the state
};

class StateSaver final : public ShardSaver {
 public:
  struct Parts {
    StageState& state;
    ShardWriter& writer;
    SaveTimer& timer;  // restarted by each save
    FrameLink& link;
    EventSink& events;
    // Adds the error-feedback state of this kind to the gradients; false if there is none.
    std::function<bool(FeedbackKind)> add_feedback;
    std::function<const CheckpointState&()> progress;
    std::function<Deadline()> deadline;          // for the exchange between ranks
    std::function<std::uint64_t()> spare_bytes;  // of memory
    // The state of rounds (plan/rounds/rounds_plan.h); valid until a step changes it. nullptr:
    // there are none.
    std::function<RoundViews()> round_views = nullptr;
    // An error if the run folder belongs to a later launch; any thread. nullptr: it cannot.
    std::function<Result<void>()> confirm_launch = nullptr;
  };

  // References must outlive it.
  StateSaver(SavingRank self, Parts parts) : self_(std::move(self)), parts_(std::move(parts)) {}

  [[nodiscard]] Result<void> save() override;

  void finish() override { parts_.writer.finish(); }

  // The last step for which a save was requested, whatever its outcome; 0 = none.
  [[nodiscard]] std::int64_t last_step() const { return last_step_; }

 private:
  Result<void> begin(ShardContents contents);
  [[nodiscard]] Result<void> confirm_launch() const;
  // The event with the outcome of a save, for which the launcher waits.
  [[nodiscard]] Json saved_event(const SaveLocation& location,
                                 const CheckpointState& state,
                                 const Result<Shard>& shard) const;

  const SavingRank self_;
  const Parts parts_;
  std::int64_t last_step_ = 0;
};

}  // namespace motley
