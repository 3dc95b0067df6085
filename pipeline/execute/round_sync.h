// RoundSync: the synchronisation of islands after a round, on one rank: all-reduces of the
// pseudo-gradients of its chunks over all ranks that hold them, with error feedback. They run on a
// thread of their own, also during the next round's first steps. At the end of a start that one
// island computed alone, its state goes the same way, exactly. Used by the compute thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "pipeline/collectives/gradient_reducer.h"
#include "pipeline/execute/stage_rounds.h"
#include "plan/plan.h"

namespace motley {

class RoundSync {
 public:
  // All references must outlive it. kConfig if the plan names an unknown codec. REQUIRES: the plan
  // has rounds.
  [[nodiscard]] static Result<std::unique_ptr<RoundSync>> make(Rank self,
                                                               const Plan& plan,
                                                               FrameLink& link,
                                                               StageRounds& rounds,
                                                               StallTimeout stall_timeout);

  // Before a step that is not synchronous.
  void begin_round(std::int64_t step) {
    if (step > start_steps_) rounds_.begin_round();
  }

  // O: begins the all-reduces, in the same order on all ranks.
  [[nodiscard]] Result<void> offer(std::int64_t step);
  // A: waits for those of the last offer and updates the parameters. Without an offer, as after a
  // resume between the steps of both under another plan, nothing changes: what islands have trained
  // belongs to their next offer. Returns when the first began and the last ended, zeros if there
  // was none; errors as GradientReducer::wait.
  [[nodiscard]] Result<GradientReducer::Span> adopt();

  // Adds the error-feedback residuals of this rank to the pseudo-gradients, or sets them from
  // there, as Executor's functions of these names. REQUIRES: every offer was adopted.
  void add_feedback();
  [[nodiscard]] Result<void> set_feedback(FeedbackScope scope);

 private:
  RoundSync(StageRounds& rounds,
            std::int64_t start_steps,
            std::unique_ptr<GradientReducer> reducer,
            std::unique_ptr<GradientReducer> exact)
      : rounds_(rounds),
        start_steps_(start_steps),
        reducer_(std::move(reducer)),
        exact_(std::move(exact)) {}

  struct Group {
    AllreduceId id;
    ProcessGroup members;
  };

  [[nodiscard]] std::vector<GradientReducer::Task> tasks();
  Result<void> begin(GradientReducer& reducer);
  Result<GradientReducer::Span> wait(GradientReducer& reducer);
  // Sends the state of the island that computed the start to all others.
  Result<GradientReducer::Span> adopt_start();

  StageRounds& rounds_;
  const std::int64_t start_steps_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<GradientReducer> exact_;  // of the state of a start island, if there is one
  std::int64_t step_ = 0;                   // of the last offer
  bool is_offered_ = false;                 // since the last adoption
  std::vector<Group> groups_;  // that include this rank, in the order of their all-reduces
};

}  // namespace motley
