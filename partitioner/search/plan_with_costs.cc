#include "partitioner/search/plan_with_costs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "partitioner/search/candidates.h"
#include "partitioner/search/no_plan_error.h"
#include "partitioner/search/plan_notes.h"
#include "partitioner/search/trial_search.h"

namespace motley {
namespace {

constexpr std::size_t kAlternatives = 4;
// A period within this factor of its bound is the least.
constexpr double kProven = 1e-6;

class CostedSearch {
 public:
  explicit CostedSearch(const TrialSetting& setting) : setting_(setting) {}

  Result<std::optional<Planning>> plan(double wanted_s) {
    candidates_ = collect_candidates(setting_.cost, setting_.space, setting_.options,
                                     kEstimateError * wanted_s);
    if (candidates_.all.empty() && std::isinf(wanted_s))
      return no_plan_error(setting_.model, setting_.cost, setting_.space, setting_.options);
    MOTLEY_ASSIGN(trials_, simulate_candidates(setting_, candidates_, wanted_s));
    if (trials_.all.empty() || trials_.all.front().plan.predicted_step_s > wanted_s) {
      return std::optional<Planning>();
    }
    Planning planning;
    planning.bounds = bounds_of(trials_.all.front());
    planning.alternatives = alternatives();
    planning.plan = trials_.all.front().plan;
    add_notes(setting_.cost, setting_.options, trials_, planning.plan);
    const std::string hash = setting_.model.hash();
    planning.plan.model_hash = hash;
    for (Plan& plan : planning.alternatives) plan.model_hash = hash;
    for (const auto& [trial, plan] : {std::pair(&trials_.single, &planning.single),
                                      {&trials_.data_parallel, &planning.data_parallel}}) {
      if (!*trial) continue;
      *plan = (*trial)->plan;
      (*plan)->model_hash = hash;
    }
    return std::optional(std::move(planning));
  }

 private:
  // Only those that differ in more than the schedule.
  std::vector<Plan> alternatives() const {
    std::vector<const PlanTrial*> listed = {&trials_.all.front()};
    std::vector<Plan> plans;
    for (const PlanTrial& trial : trials_.all) {
      if (plans.size() == kAlternatives) break;
      const auto same = [&](const PlanTrial* other) {
        return other->candidate.stages == trial.candidate.stages &&
               other->shape.micro_batch == trial.shape.micro_batch;
      };
      if (std::any_of(listed.begin(), listed.end(), same)) continue;
      listed.push_back(&trial);
      plans.push_back(trial.plan);
    }
    return plans;
  }

  PlanBounds bounds_of(const PlanTrial& trial) const {
    PlanBounds bounds;
    bounds.period_s = trial.candidate.period_s;
    bounds.estimate_s = trial.candidate.estimate_s;
    StepShape searched = trial.shape;
    searched.schedule = schedule_facts(searched.schedule).searched_as;
    for (const ShapeBounds& shape : candidates_.bounds) {
      if (shape.shape != searched) continue;
      bounds.method = shape.method;
      bounds.period_bound_s = shape.period_bound_s;
      bounds.least_period_s = shape.least_period_s;
      bounds.fluid_period_s = shape.fluid_period_s;
      bounds.granularity_period_s = shape.granularity_period_s;
      bounds.step_bound_s = shape.step_bound_s;
      bounds.proven =
          shape.method == "exact" || (shape.method == "all sets" &&
                                      shape.least_period_s <= shape.period_bound_s * (1 + kProven));
    }
    return bounds;
  }

  const TrialSetting setting_;
  Candidates candidates_;
  Trials trials_;
};

}  // namespace

Result<std::optional<Planning>> plan_with_costs(const TrialSetting& setting, double wanted_s) {
  return CostedSearch(setting).plan(wanted_s);
}

}  // namespace motley
