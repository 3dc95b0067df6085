// What can be wrong with what a run is asked to be, found before anything is started.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

// Checks that a plan that was given can be run: that it is of this model, config and cluster, that
// its codecs exist and that its schedule is valid. kConfig says what differs.
[[nodiscard]] Result<void> check_plan(const Plan& plan,
                                      const ModelSpec& model,
                                      const Config& config,
                                      const Cluster& cluster);

// Checks that a plan can be asked for: all that check_plan_options finds, and that the profiles
// that are there already are of this model. kConfig.
[[nodiscard]] Result<void> check_planning(const PlanOptions& options,
                                          const ModelSpec& model,
                                          const Cluster& cluster,
                                          const Profile& known);

// Takes out of the cluster what a 'never' pin excludes and no profile tells of, with the pins on
// it: it need not be reached, nor measured. REQUIRES: check_planning().
void leave_out_unmeasured(Cluster& cluster, Pins& pins, const Profile& known);

// Machines that a plan with these pins may use.
[[nodiscard]] std::set<std::string> machines_to_plan_with(const Cluster& cluster, const Pins& pins);

}  // namespace motley
