// Validates plans and planning requests before any process is started.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "run_config/config.h"

namespace motley {

// Checks that a given plan can be run: it fits this model, config and cluster, its codecs exist and
// its schedule is valid. kConfig names the difference.
[[nodiscard]] Result<void> check_plan(const Plan& plan,
                                      const ModelSpec& model,
                                      const Config& config,
                                      const Cluster& cluster);

// Checks that a plan can be made: the checks of check_plan_options, and that the existing profiles
// are of this model. kConfig.
[[nodiscard]] Result<void> check_planning(const PlanOptions& options,
                                          const ModelSpec& model,
                                          const Cluster& cluster,
                                          const Profile& known);

// Removes machines from the cluster that a 'never' pin excludes and no profile covers, with the
// pins on them: they need not be reached or measured. REQUIRES: check_planning().
void leave_out_unmeasured(Cluster& cluster, Pins& pins, const Profile& known);

// The machines that a plan with these pins may use.
[[nodiscard]] std::set<std::string> machines_to_plan_with(const Cluster& cluster, const Pins& pins);

}  // namespace motley
