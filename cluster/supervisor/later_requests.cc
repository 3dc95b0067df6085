#include "cluster/supervisor/later_requests.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "cluster/supervisor/learning.h"
#include "cluster/supervisor/members.h"
#include "cluster/supervisor/reusable_plan.h"

namespace motley {

void LaterRequests::note_move(const BetterPlan& better) {
  ++switches_;
  // While a machine is left out, the first plan is retained for its return.
  if (absences.left_out().empty()) first_plan_ = better.plan;
  measured_ = better.profile;
}

TrainingRequest LaterRequests::without(const std::vector<std::string>& machines,
                                       const Plan& last,
                                       std::optional<double> failed_at_s) const {
  TrainingRequest next = first_;
  PlanRequest& planning = next.planning;
  if (planning.known_profile.devices.empty() || switches_ > 0) planning.known_profile = measured_;
  planning = request_without(std::move(planning), machines);
  planning.plan = plan_to_reuse(first_plan_, last, absences.left_out(), machines);
  if (!planning.plan) planning.stages = 0;  // the planner's choice for the machines that are left
  next.measure_anew = false;
  next.resume = first_.resume.value_or(ResumeRequest{});
  // The plan may differ from the one under which the newest checkpoint was saved: the first plan
  // once a machine is back, or that of a move.
  next.resume->may_round_differently = true;
  next.resume->failed_at_s = failed_at_s;
  next.machines.have_answered = true;
  next.replan.switches_done = switches_;
  return next;
}

Result<std::unique_ptr<ReturnWatch>> LaterRequests::watch_absent(const ReadyRun& run,
                                                                 double start_s,
                                                                 const Log& log) const {
  if (absences.left_out().empty()) return std::unique_ptr<ReturnWatch>();
  const Plan& plan = run.planned.plan;
  const auto predict = [this, &plan](const std::vector<std::string>& returning,
                                     const std::stop_token& stop) {
    return predicted_step_s(without(left_out_except(returning), plan, {}).planning, plan, stop);
  };
  return ReturnWatch::start({.cluster = first_.planning.cluster,
                             .program = first_.machines.stage_program,
                             .absent = absences.absent(),
                             .present_step_s = plan.predicted_step_s,
                             .start_s = start_s,
                             .last_step = run.steps.last,
                             .predict = predict},
                            log);
}

std::vector<std::string> LaterRequests::left_out_except(
    const std::vector<std::string>& returning) const {
  std::vector<std::string> machines = absences.left_out();
  std::erase_if(machines, [&](const std::string& machine) {
    return std::ranges::count(returning, machine) > 0;
  });
  return machines;
}

}  // namespace motley
