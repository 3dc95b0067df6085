// The one way from a configuration to what a plan is made from, in three steps: what files say,
// which devices the machines have, and what was measured of them. Every command that plans takes
// it.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/examine/measure.h"
#include "job/config.h"
#include "job/config_io.h"
#include "models/spec/initial_weights.h"
#include "partitioner/advise/planning_input.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct PlanRequest {
  Config config;
  Cluster cluster;                          // devices may be "auto" still
  int stages = 0;                           // exactly so many; 0 = the planner's choice
  std::optional<Plan> plan = std::nullopt;  // given instead of being made
  Profile known_profile = {};               // devices that need no measuring
};

// The number of stages that are asked for by number or by cuts; at least 1.
[[nodiscard]] int stages_asked_for(const PlanRequest& request);

// Checks the configuration, describes its model, and settles devices as far as the plan or the
// profile knows them: nothing is started. `profile` is what was known. A plan that is given is
// checked, and else whether one can be asked for. kConfig and kInfeasible.
[[nodiscard]] Result<PlanningInput> resolve_plan(const PlanRequest& request);

// Asks the machines with "auto" devices what they have, and checks that a plan can be asked for of
// these. Errors are those of settle_by_asking and check_planning. REQUIRES: check_usable().
[[nodiscard]] Result<void> settle_devices(PlanningInput& input,
                                          const std::filesystem::path& program,
                                          double timeout_s,
                                          const Log& log);

// Measures what `input.profile` does not cover, and warns of what cannot be trusted too far. With
// `must_hold_model`, devices without the memory that every plan takes are kInfeasible before they
// are measured. Other errors are those of measure_cluster.
[[nodiscard]] Result<void> measure_devices(PlanningInput& input,
                                           const Config& config,
                                           const std::filesystem::path& program,
                                           bool must_hold_model,
                                           MeasureOptions options,
                                           const Log& log);

// Whether model.init_from holds weights of the configured model, where it is there: on a launcher
// without it each machine looks for itself. kConfig, with both values of each difference and both
// places; kCorrupt for what cannot be read.
[[nodiscard]] Result<void> check_initial_weights_here(const Config& config,
                                                      const KeyOrigins& origins);

// For measuring where no weights will be loaded, which need not be there then.
[[nodiscard]] Config without_initial_weights(Config config);

// Whether these machines can be used for the model: each has the program, which is not asked where
// they `have_answered` before, and, where the model is a package, sees it as this one does. Errors
// are those of check_reachable and check_package_seen.
[[nodiscard]] Result<void> check_usable(const Cluster& cluster,
                                        const std::set<std::string>& machines,
                                        const ModelSpec& model,
                                        const std::filesystem::path& program,
                                        bool have_answered = false);

}  // namespace motley
