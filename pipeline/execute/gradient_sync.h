// GradientSync: the all-reduces of a step's gradients (R, T) on one rank. GradientReducer runs them
// on a thread of its own, overlapped with computation: each starts with the last action that
// changes its gradients (pipeline/schedule/action_rules.h); R and T wait for its end. Used by the
// compute thread alone.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/collectives/gradient_reducer.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/process_group.h"
#include "pipeline/schedule/step_effect.h"
#include "plan/plan.h"

namespace motley {

class GradientSync {
 public:
  // All references must outlive it. kConfig when the options name an unknown codec. within_island:
  // the all-reduces are those of this rank's island (plan/rounds/rounds_plan.h); else of all ranks.
  [[nodiscard]] static Result<std::unique_ptr<GradientSync>> make(Rank self,
                                                                  const Plan& plan,
                                                                  FrameLink& link,
                                                                  StageGradients& gradients,
                                                                  const CompressorOptions& options,
                                                                  StallTimeout stall_timeout,
                                                                  double local_clip = 0,
                                                                  bool within_island = false);

  // Called before the first action of a step: submits all its all-reduces, in the order of the
  // schedule. REQUIRES: the schedule has passed validate_schedule, so that all ranks have one
  // order.
  [[nodiscard]] Result<void> begin(const Schedule& schedule, std::int64_t step);

  // The gradient-ready callback of a backward at position `at` of the rank's list, which reports
  // from which value on the chunk's gradients are final; empty if they are not all-reduced, or if a
  // later action still changes them.
  [[nodiscard]] StageCompute::OnReady on_ready(const Action& action, std::size_t at);
  // Called after every backward.
  void after(const Action& action, std::size_t at);

  // R, T: waits for the all-reduce and returns when it started and ended.
  [[nodiscard]] Result<GradientReducer::Span> wait(const Action& action);

  // Called after the vote on a step whose all-reduces are done.
  void end_step(StepEffect effect);

  // Contracts as for the functions of Executor of the same names.
  [[nodiscard]] bool add_feedback(FeedbackKind what);
  [[nodiscard]] Result<void> set_feedback(FeedbackKind what,
                                          FeedbackScope scope,
                                          const Schedule& schedule);

 private:
  GradientSync(Rank self,
               FrameLink& link,
               StageGradients& gradients,
               const CompressorOptions& options,
               StallTimeout stall_timeout,
               double local_clip);

  // The all-reduces of a step, in their order. Makes reducer_ if there are any.
  Result<std::vector<GradientReducer::Task>> tasks_of(const std::vector<Action>& actions);

  [[nodiscard]] bool has_allreduce(const AllreduceId& id) const;

  const Rank self_;
  FrameLink& link_;
  StageGradients& gradients_;
  const CompressorOptions options_;
  const StallTimeout stall_timeout_;
  const double local_clip_;
  std::vector<ProcessGroup> replica_groups_;  // [ChunkId]
  ProcessGroup tied_group_;                   // of the first or the last chunk
  std::unique_ptr<GradientReducer> reducer_;  // made for the first step with an all-reduce
  LastChanges last_changes_;                  // of the current step
};

}  // namespace motley
