#include "partitioner/search/plan_with_costs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/memory_deficit.h"
#include "partitioner/search/plan_notes.h"
#include "partitioner/search/plan_options.h"
#include "partitioner/search/trial_search.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr std::size_t kPinsShown = 8;

// For a model that fits.
Error unwanted(const PlanOptions& options) {
  if (options.pins == Pins{}) {
    return {ErrorCode::kConfig, fmt::format("no plan with {} stages was found", options.stages),
            "the model fits, but no cut into this number of stages fits on all devices",
            "use another number of stages, or set their first layers (parallel.cuts)"};
  }
  std::vector<std::string> pins = pin_texts(options.pins);
  const bool is_long = pins.size() > kPinsShown;
  pins.resize(std::min(pins.size(), kPinsShown));
  return {ErrorCode::kConfig, "no plan satisfies the pins",
          "the model fits without them, but not with them",
          pins.size() == 1 ? fmt::format("remove the pin '{}'", pins.front())
                           : fmt::format("remove one of these pins: '{}'{}",
                                         fmt::join(pins, "', '"), is_long ? ", …" : "")};
}

// The error if the searches found nothing: kInfeasible, with the memory deficit of the stage in the
// cut that comes closest to fitting; kConfig if the model fits, but not with these options.
Error no_plan_error(const ModelSpec& model,
                    const CostModel& cost,
                    const SearchSpace& space,
                    const PlanOptions& options) {
  std::optional<MemoryDeficit> least;
  StepShape least_shape;
  for (const StepShape& shape : step_shapes(options)) {
    const StageTable table(cost, shape);
    const bool recompute = space.recompute != Recompute::kNever;
    const MemoryDeficit memory_deficit =
        options.cuts.empty() ? smallest_memory_deficit(table, space, recompute)
                             : memory_deficit_of(table, given_stages(options), recompute);
    if (least && least->missing_bytes <= memory_deficit.missing_bytes) continue;
    least = memory_deficit;
    least_shape = shape;
  }
  if (least->missing_bytes <= 0) return unwanted(options);
  const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(least->slot)];
  const auto layer_name = [&](int l) { return model.layers[static_cast<std::size_t>(l)].name; };
  const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  return {ErrorCode::kInfeasible,
          fmt::format("the model does not fit: {}/{} lacks {} of memory", slot.machine, slot.device,
                      text(least->missing_bytes)),
          fmt::format("even in the best cut, layers {} … {} with micro-batches of {} need {} of "
                      "its {}",
                      layer_name(least->first_layer), layer_name(least->last_layer - 1),
                      least_shape.micro_batch, text(least->needed_bytes), text(slot.memory_bytes)),
          "add a machine or memory, or make the model or train.micro_batch smaller"};
}

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
