// Adaptation: evaluates the running plan by its measured steps. It reports a better plan to the
// user, or requests a switch to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/log.h"
#include "cluster/replan/better_plan.h"
#include "cluster/replan/plan_search.h"
#include "cluster/replan/step_windows.h"
#include "partitioner/report/planning_input.h"
#include "plan/plan.h"
#include "protocol/protocol.h"

namespace motley {

struct AdaptationRules {
  bool switches = false;       // else it only reports
  int switches_done = 0;       // by launches before this one
  std::int64_t last_step = 0;  // of this launch
  // The smallest gain in step time. Each switch requires this much more than the previous one, so
  // that noise does not move layers back and forth.
  double least_gain = 0.05;
  // The time saved until the last step must be this multiple of a launch's start-up time.
  double least_return = 3;
};

// One owner thread.
class Adaptation {
 public:
  // How the plan's rounding differs from that of the run's plan, e.g. "other layers on its
  // replicas"; nothing if it does not.
  using RoundingChange = std::function<std::optional<std::string>(const Plan&)>;
  // To be constructed at the start of a launch. `input`: as for planning the run again; with an
  // empty profile no plan is searched.
  Adaptation(PlanningInput input,
             Plan plan,
             AdaptationRules rules,
             RoundingChange rounding_change,
             const Log& log);

  // Adds a rank's report of a step. Returns a message for the user, at most once per launch.
  // REQUIRES: the steps of one rank come in order.
  [[nodiscard]] std::optional<std::string> on_step(Rank rank, const StepReport& report);

  // The plan to which the run is to switch. Once set, it does not change and no further search is
  // made.
  [[nodiscard]] const std::optional<BetterPlan>& plan_switch() const { return switch_; }

 private:
  [[nodiscard]] double least_gain() const;
  [[nodiscard]] std::optional<std::string> assess(BetterPlan better, std::int64_t step);

  const Plan plan_;
  const AdaptationRules rules_;
  const RoundingChange rounding_change_;
  const Log& log_;
  const double began_at_s_;
  double start_s_ = 0;  // duration until the first step was done; 0 = not yet
  StepWindows steps_;
  bool is_over_ = false;  // a result was reported or decided, or the search failed
  std::optional<BetterPlan> switch_;
  PlanSearch search_;  // last: destroyed before the members that it uses
};

}  // namespace motley
