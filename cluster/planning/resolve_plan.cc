#include "cluster/planning/resolve_plan.h"

#include <algorithm>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/launch/reachability.h"
#include "cluster/planning/check_plan.h"
#include "cluster/planning/planning_options.h"
#include "training/optimizer/parameter_rules.h"

namespace motley {

int stages_asked_for(const PlanRequest& request) {
  const int cuts = static_cast<int>(request.config.parallel.cuts.size());
  return std::max(request.stages, cuts + 1);
}

Result<PlanningInput> resolve_plan(const PlanRequest& request) {
  MOTLEY_TRY(validate_config(request.config));
  PlanningInput input;
  MOTLEY_ASSIGN(input.model, describe_model(request.config.model));
  MOTLEY_ASSIGN([[maybe_unused]] const auto rules,
                ParameterRules::make(request.config.train, input.model));
  MOTLEY_ASSIGN(input.options, plan_options(request.config, input.model, request.stages));
  input.cluster = request.cluster;
  input.profile = request.known_profile;
  if (request.plan) {
    settle_by_plan(input.cluster, *request.plan);
    settle_by_profile(input.cluster, input.profile);
    MOTLEY_TRY(check_plan(*request.plan, input.model, request.config, input.cluster));
    return input;
  }
  settle_by_profile(input.cluster, input.profile);
  MOTLEY_TRY(check_planning(input.options, input.model,
                            with_any_devices(input.cluster, stages_asked_for(request)),
                            input.profile));
  leave_out_unmeasured(input.cluster, input.options.pins, input.profile);
  return input;
}

Result<PlanningInput> settle_devices(PlanningInput input,
                                     const std::filesystem::path& program,
                                     double timeout_s,
                                     const Log& log) {
  if (std::ranges::none_of(input.cluster.machines, has_automatic_devices)) return input;
  MOTLEY_TRY(settle_by_queries(input.cluster, program, timeout_s, log));
  MOTLEY_TRY(check_planning(input.options, input.model, input.cluster, input.profile));
  return input;
}

Result<PlanningInput> measure_devices(PlanningInput input,
                                      const Config& config,
                                      const std::filesystem::path& program,
                                      bool must_hold_model,
                                      MeasureOptions options,
                                      const Log& log) {
  if (must_hold_model) {
    options.least_bytes =
        least_memory_bytes(input.model, input.options.process_state.moments_per_parameter);
  }
  MOTLEY_ASSIGN(input.profile,
                measure_cluster(input.cluster, config, program, input.profile, options, log));
  warn_of(input.profile, log);
  return input;
}

Result<void> check_initial_weights_here(const Config& config, const KeyOrigins& origins) {
  if (config.model.init_from.empty()) return {};
  MOTLEY_ASSIGN(const bool exists, path_exists(config.model.init_from));
  if (!exists) return {};
  MOTLEY_ASSIGN(const auto reader, CheckpointReader::open(config.model.init_from));
  MOTLEY_ASSIGN(const WeightsOutline outline, reader.outline());
  return check_weights(config.model, origins, outline.tensors, outline.config, outline.source);
}

Config without_initial_weights(Config config) {
  config.model.init_from.clear();
  return config;
}

Result<void> check_usable(const Cluster& cluster,
                          const std::set<std::string>& machines,
                          const ModelSpec& model,
                          const std::filesystem::path& program,
                          bool have_answered) {
  MOTLEY_TRY(have_answered ? check_devices(cluster, machines)
                           : check_reachable(cluster, machines, program));
  const auto package = model.package_fingerprint();
  return package ? check_package_seen(cluster, machines, *package) : Result<void>();
}

}  // namespace motley
