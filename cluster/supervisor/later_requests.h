// LaterRequests: the requests of a run's later launches, made from that of its first one, the plans
// that it has had, and the machines that it does without.
//
// Used by one thread; const functions may be called by several.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/replan/better_plan.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"
#include "cluster/supervisor/absences.h"
#include "cluster/supervisor/return_watch.h"

namespace motley {

class LaterRequests {
 public:
  // Of the first launch. `first` is borrowed.
  LaterRequests(const TrainingRequest& first, const PlannedRun& planned)
      : first_(first), measured_(planned.profile), first_plan_(planned.plan) {}

  [[nodiscard]] const TrainingRequest& first() const { return first_; }

  // The profile of the run's devices, as corrected by moves.
  [[nodiscard]] const Profile& measured() const { return measured_; }

  [[nodiscard]] int switches() const { return switches_; }

  // The machines that the last launch did without; the owner keeps them up to date.
  Absences absences;

  // The run moves to this plan.
  void note_move(const BetterPlan& better);

  // For a launch without these machines. `last`: the plan of the last launch. failed_at_s: since
  // when no launch has made progress.
  [[nodiscard]] TrainingRequest without(const std::vector<std::string>& machines,
                                        const Plan& last,
                                        std::optional<double> failed_at_s) const;

  // Asks the machines that this launch does without; null if there are none. start_s: as
  // ReturnGain. All arguments and this object must outlive it and not change meanwhile.
  [[nodiscard]] Result<std::unique_ptr<ReturnWatch>> watch_absent(const ReadyRun& run,
                                                                  double start_s,
                                                                  const Log& log) const;

  // The machines left out by the last launch, except these.
  [[nodiscard]] std::vector<std::string> left_out_except(
      const std::vector<std::string>& returning) const;

 private:
  const TrainingRequest& first_;
  Profile measured_;
  Plan first_plan_;  // of the start or of the last move
  int switches_ = 0;
};

}  // namespace motley
