// From a configuration to the planner's input, in three steps: files, the machines' devices,
// measurements. All commands that plan use it.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/diagnose/measure.h"
#include "models/spec/initial_weights.h"
#include "partitioner/report/planning_input.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "run_config/config.h"
#include "run_config/config_io.h"

namespace motley {

struct PlanRequest {
  Config config;
  Cluster cluster;                          // may still contain "auto" devices
  int stages = 0;                           // the exact number; 0 = the planner's choice
  std::optional<Plan> plan = std::nullopt;  // if set, no plan is made
  Profile known_profile = {};               // devices that need no measuring
};

// The number of stages requested by number or by cuts; at least 1.
[[nodiscard]] int stages_asked_for(const PlanRequest& request);

// Checks the configuration, describes its model, and settles devices as far as the plan or the
// profile knows them. Starts no process. `profile` of the result is the known one. Validates a
// given plan, or else whether one can be made. kConfig and kInfeasible.
[[nodiscard]] Result<PlanningInput> resolve_plan(const PlanRequest& request);

// The same input with the devices of machines with "auto", which are queried; checks that a plan
// can be made with these. Errors are those of settle_by_queries and check_planning. REQUIRES:
// check_usable().
[[nodiscard]] Result<PlanningInput> settle_devices(PlanningInput input,
                                                   const std::filesystem::path& program,
                                                   double timeout_s,
                                                   const Log& log);

// The same input with a profile of all devices: measures what `input.profile` does not cover, and
// warns of unreliable times. With `must_hold_model`, devices with less memory than every plan needs
// are kInfeasible before they are measured. Other errors are those of measure_cluster.
[[nodiscard]] Result<PlanningInput> measure_devices(PlanningInput input,
                                                    const Config& config,
                                                    const std::filesystem::path& program,
                                                    bool must_hold_model,
                                                    MeasureOptions options,
                                                    const Log& log);

// Checks that model.init_from contains weights of the configured model, if the launcher sees it;
// else each machine checks for itself. kConfig, with both values of each difference and both
// sources; kCorrupt for unreadable files.
[[nodiscard]] Result<void> check_initial_weights_here(const Config& config,
                                                      const KeyOrigins& origins);

// For profiling, which loads no weights, so their files need not exist.
[[nodiscard]] Config without_initial_weights(Config config);

// Checks that these machines are usable for the model: each has the program (skipped if they
// `have_answered` before), and, for a model package, sees the same package as this machine. Errors
// are those of check_reachable and check_package_seen.
[[nodiscard]] Result<void> check_usable(const Cluster& cluster,
                                        const std::set<std::string>& machines,
                                        const ModelSpec& model,
                                        const std::filesystem::path& program,
                                        bool have_answered = false);

}  // namespace motley
