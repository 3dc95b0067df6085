// GradientSync: the sums of a step's gradients over ranks (R, T) as one rank's actions go by. Each
// begins with the last action that changes what is summed (pipeline/schedule/action_rules.h), on
// the thread of GradientReducer; R and T wait for what is left. Used by the compute thread alone.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/reduce/gradient_reducer.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/process_group.h"
#include "pipeline/schedule/step_effect.h"
#include "plan/plan.h"

namespace motley {

class GradientSync {
 public:
  // What is lent must outlive it. kConfig when the options name an unknown codec.
  [[nodiscard]] static Result<std::unique_ptr<GradientSync>> make(Rank self,
                                                                  const Plan& plan,
                                                                  FrameLink& link,
                                                                  StageGradients& gradients,
                                                                  const CompressorOptions& options,
                                                                  Patience patience,
                                                                  double local_clip = 0);

  // Before the first action of a step: all sums of the step, in the order of the schedule, which
  // must have passed validate_schedule and is then the same on all ranks.
  [[nodiscard]] Result<void> begin(const Schedule& schedule, std::int64_t step);

  // For a backward that stands at `at` in the rank's list: whom it tells how far the chunk's
  // gradients are final; empty where nobody sums them, or a later action still changes them.
  [[nodiscard]] StageCompute::OnFinal on_final(const Action& action, std::size_t at);
  // After every backward.
  void after(const Action& action, std::size_t at);

  // R, T: waits for the sum and says when it was under way.
  [[nodiscard]] Result<GradientReducer::Span> wait(const Action& action);

  // After the vote on a step whose sums are done.
  void end_step(StepEffect effect);

  // As Executor's.
  [[nodiscard]] bool add_kept(Kept what);
  [[nodiscard]] Result<void> set_kept(Kept what, KeptBy whose, const Schedule& schedule);

 private:
  GradientSync(Rank self,
               FrameLink& link,
               StageGradients& gradients,
               const CompressorOptions& options,
               Patience patience,
               double local_clip);

  // The sums of a step, in their order, and the thread for them if there are any.
  Result<std::vector<GradientReducer::Task>> tasks_of(const std::vector<Action>& actions);

  [[nodiscard]] bool runs(const AllreduceId& sum) const;

  const Rank self_;
  FrameLink& link_;
  StageGradients& gradients_;
  const CompressorOptions options_;
  const Patience patience_;
  const double local_clip_;
  std::vector<ProcessGroup> holders_;         // [ChunkId]
  ProcessGroup end_holders_;                  // of the first chunk or the last
  std::unique_ptr<GradientReducer> reducer_;  // made for the first step that sums
  LastChanges last_changes_;                  // of the step under way
};

}  // namespace motley
