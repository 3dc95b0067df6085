#include "cluster/supervisor/learning.h"

#include <utility>

#include "cluster/planning/plan_rounding.h"
#include "cluster/planning/planning_options.h"
#include "cluster/prepare/resumed_plan.h"
#include "partitioner/report/planning_input.h"

namespace motley {
namespace {

// The input for planning the run again, with the options of its plan that affect rounding.
Result<PlanningInput> input_of(const PlannedRun& run, const TrainingRequest& request) {
  PlanningInput input{.model = run.model, .cluster = run.cluster, .profile = {}, .options = {}};
  if (request.replan.mode == ReplanMode::kOff || !capabilities_of(run.plan).is_measured) {
    return input;
  }
  // A plan reused from the previous launch was made from that launch's profile.
  input.profile = run.profile.devices.empty() ? request.planning.known_profile : run.profile;
  MOTLEY_ASSIGN(PlanOptions options, plan_options(run.config, run.model, request.planning.stages));
  options.micro_batch = run.plan.micro_batch;
  input.options = options_like(plan_fingerprint(run.plan), run.config, std::move(options));
  return input;
}

class StoppedSearch : public SearchObserver {
 public:
  explicit StoppedSearch(const std::stop_token& stop) : stop_(stop) {}

  bool may_continue(double /*step_s*/) override { return !stop_.stop_requested(); }

 private:
  const std::stop_token& stop_;
};

}  // namespace

Result<double> predicted_step_s(const PlanRequest& planning,
                                const Plan& like,
                                const std::stop_token& stop) {
  if (planning.plan) return planning.plan->predicted_step_s;
  MOTLEY_ASSIGN(PlanningInput input, resolve_plan(planning));
  input.options.micro_batch = like.micro_batch;
  input.options = options_like(plan_fingerprint(like), planning.config, std::move(input.options));
  StoppedSearch stopped(stop);
  input.options.watch = &stopped;
  MOTLEY_ASSIGN(const Plan plan, make_plan(input));
  return plan.predicted_step_s;
}

Result<std::unique_ptr<Adaptation>> adaptation_of(const ReadyRun& run,
                                                  const TrainingRequest& request,
                                                  const Log& log) {
  MOTLEY_ASSIGN(PlanningInput input, input_of(run.planned, request));
  const AdaptationRules rules{.switches = request.replan.mode == ReplanMode::kSwitch,
                              .switches_done = request.replan.switches_done,
                              .last_step = run.steps.last};
  auto change_of = [&run](const Plan& plan) {
    return rounding_change(plan_fingerprint(run.planned.plan), run.folder, plan);
  };
  return std::make_unique<Adaptation>(std::move(input), run.planned.plan, rules,
                                      std::move(change_of), log);
}

}  // namespace motley
