// Adaptation: a run that trains learns of its own plan. It tells the person of a better one, or
// asks for the move to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/log.h"
#include "cluster/learn/better_plan.h"
#include "cluster/learn/plan_search.h"
#include "cluster/learn/step_windows.h"
#include "partitioner/advise/planning_input.h"
#include "plan/plan.h"
#include "protocol/protocol.h"

namespace motley {

struct AdaptationRules {
  bool moves = false;          // else it only tells
  int moves_done = 0;          // by launches before this one
  std::int64_t last_step = 0;  // that this launch trains
  // What a plan must save of the step. Each move asks for this much more than the one before, so
  // that noise does not send layers back and forth.
  double least_gain = 0.05;
  // What is saved until the last step must be so many times what a launch takes to start.
  double least_return = 3;
};

// One owner thread.
class Adaptation {
 public:
  // What this plan rounds otherwise than the run's, "other layers on its replicas"; nothing where
  // it does not.
  using RoundingChange = std::function<std::optional<std::string>(const Plan&)>;
  // The launch starts now. input: as the run's own plan would be made again; its profile may be
  // empty, and nothing is learned then.
  Adaptation(PlanningInput input,
             Plan plan,
             AdaptationRules rules,
             RoundingChange rounding_change,
             const Log& log);

  // What a rank told of a step. Returns what there is to tell people of it, once. Steps of one rank
  // come in order.
  [[nodiscard]] std::optional<std::string> on_step(Rank rank, const StepReport& report);

  // The plan that the run shall be moved to: once it is there it stays, and nothing more is
  // learned.
  [[nodiscard]] const std::optional<BetterPlan>& move() const { return move_; }

 private:
  [[nodiscard]] double least_gain() const;
  [[nodiscard]] std::optional<std::string> judge(BetterPlan better, std::int64_t step);

  const Plan plan_;
  const AdaptationRules rules_;
  const RoundingChange rounding_change_;
  const Log& log_;
  const double began_at_s_;
  double start_s_ = 0;  // until the first step was done; 0 = it is not
  StepWindows steps_;
  bool is_over_ = false;  // it was told or decided, or cannot be known
  std::optional<BetterPlan> move_;
  PlanSearch search_;  // last: it ends before what it tells of
};

}  // namespace motley
