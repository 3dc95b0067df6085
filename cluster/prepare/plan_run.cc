#include "cluster/prepare/plan_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cluster/diagnose/precision_check.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/resolve_plan.h"
#include "cluster/prepare/resumed_plan.h"
#include "training/optimizer/parameter_rules.h"

namespace motley {
namespace {

// One warning here: the workers compare the existing references and do not report missing ones.
Result<void> warn_of_references(const ModelSpec& model, const Log& log) {
  MOTLEY_ASSIGN(const std::string missing, model.missing_references());
  if (!missing.empty()) log.warn(missing);
  return {};
}

// Says which parameters an optimizer of matrices trains.
Result<void> log_parameter_rules(const TrainConfig& train, const ModelSpec& model, const Log& log) {
  MOTLEY_ASSIGN(const ParameterRules rules, ParameterRules::make(train, model));
  if (!rules.summary().empty()) log.info(rules.summary());
  return {};
}

struct MeasuredPlan {
  Profile profile;  // empty if the plan was given
  Plan plan;
};

MeasuredPlan given_plan(const Plan& plan, const std::string& precision, const Log& log) {
  if (const auto other = plan_of_other_precision(precision, plan)) log.warn(*other);
  return {{}, plan};
}

Result<MeasuredPlan> measure_and_plan(const TrainingRequest& request,
                                      const RunStart& start,
                                      const PlanningInput& settled,
                                      const ClaimedFolder& claimed,
                                      const Log& log) {
  const Config& config = start.config;
  MOTLEY_ASSIGN(
      const PlanningInput input,
      measure_devices(settled, start.resumed ? without_initial_weights(config) : config,
                      request.machines.stage_program, /*must_hold_model=*/true,
                      {.anew = request.measure_anew, .quiet = request.display.quiet}, log));
  MOTLEY_ASSIGN(Plan plan, plan_like(start.saved, config, input, claimed.folder));
  MOTLEY_TRY(check_plan_precision(config.train.precision, plan, input.profile));
  if (!request.dry_run) {
    MOTLEY_TRY(claimed.lock->confirm());
    MOTLEY_TRY(claimed.folder.write_profile(input.profile));
  }
  if (start.saved) log_plan_change(start.saved->fingerprint, claimed.folder, plan, log);
  return MeasuredPlan{input.profile, std::move(plan)};
}

// 0 if the ranks differ: then only the plan contains the thread counts.
int threads_of_all(const Plan& plan) {
  const int threads = plan.ranks.front().threads;
  const auto has_as_many = [&](const RankPlan& rank) { return rank.threads == threads; };
  return std::ranges::all_of(plan.ranks, has_as_many) ? threads : 0;
}

Config config_for(const Plan& plan, Config config) {
  config.train.micro_batch = plan.micro_batch;
  config.run.threads = threads_of_all(plan);
  return config;
}

}  // namespace

Result<PlannedRun> plan_run(const TrainingRequest& request,
                            const RunStart& start,
                            const ClaimedFolder& claimed,
                            const Log& log) {
  MOTLEY_ASSIGN(PlanningInput input,
                settle_devices(start.planning, request.machines.stage_program,
                               request.planning.config.comm.start_timeout_s, log));
  if (capabilities_of(input.cluster).computes) MOTLEY_TRY(warn_of_references(input.model, log));
  MOTLEY_TRY(log_parameter_rules(start.config.train, input.model, log));
  MeasuredPlan measured;
  if (request.planning.plan) {
    measured = given_plan(*request.planning.plan, start.config.train.precision, log);
  } else {
    MOTLEY_ASSIGN(measured, measure_and_plan(request, start, input, claimed, log));
  }
  MOTLEY_ASSIGN(TransportChoice transport,
                choose_transport(input.cluster, machines_in_use(measured.plan), start.config.comm));
  return PlannedRun{.config = config_for(measured.plan, start.config),
                    .model = std::move(input.model),
                    .cluster = std::move(input.cluster),
                    .profile = std::move(measured.profile),
                    .plan = std::move(measured.plan),
                    .transport = std::move(transport)};
}

}  // namespace motley
