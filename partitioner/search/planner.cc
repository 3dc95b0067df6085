#include "partitioner/search/planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "base/check.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/pipelines/exact_search.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/no_plan.h"
#include "partitioner/search/plan_notes.h"
#include "partitioner/search/trial_search.h"

namespace motley {
namespace {

constexpr std::size_t kAlternatives = 4;
// Simulated steps are hardly ever shorter than their estimates by more.
constexpr double kEstimateError = 1.15;
// A period this close to its bound is the least.
constexpr double kProven = 1e-6;
// The usual micro-batch may make the step longer by this share and so many seconds: predictions
// scatter by as much, those of the shortest steps most, and what noise has chosen is another result
// at the next start.
constexpr double kUsualLoss = 0.15;
constexpr double kUsualLoss_s = 0.01;

class Planner {
 public:
  Planner(const ModelSpec& model,
          const CostModel& cost,
          const std::vector<CostModel>& with_each_codec,
          const SearchSpace& space,
          const PlanOptions& options)
      : model_(model),
        cost_(cost),
        with_each_codec_(with_each_codec),
        space_(space),
        options_(options) {}

  // Nothing where a finite ceiling leaves no trial.
  Result<std::optional<Planning>> plan(double ceiling_s) {
    candidates_ = collect_candidates(cost_, space_, options_, ceiling_s);
    if (candidates_.all.empty() && std::isinf(ceiling_s))
      return no_plan(model_, cost_, space_, options_);
    MOTLEY_ASSIGN(trials_, simulate_candidates(model_, cost_, with_each_codec_, space_, options_,
                                               candidates_, ceiling_s));
    if (trials_.all.empty()) return std::optional<Planning>();
    Planning planning;
    planning.bounds = bounds_of(trials_.all.front());
    planning.alternatives = alternatives();
    planning.plan = trials_.all.front().plan;
    add_notes(cost_, options_, trials_, planning.plan);
    const std::string hash = model_.hash();
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
  // Of those that differ in more than the schedule.
  std::vector<Plan> alternatives() const {
    std::vector<const PlanTrial*> told = {&trials_.all.front()};
    std::vector<Plan> plans;
    for (const PlanTrial& trial : trials_.all) {
      if (plans.size() == kAlternatives) break;
      const auto same = [&](const PlanTrial* other) {
        return other->candidate.stages == trial.candidate.stages &&
               other->shape.micro_batch == trial.shape.micro_batch;
      };
      if (std::any_of(told.begin(), told.end(), same)) continue;
      told.push_back(&trial);
      plans.push_back(trial.plan);
    }
    return plans;
  }

  PlanBounds bounds_of(const PlanTrial& trial) const {
    PlanBounds bounds;
    bounds.period_s = trial.candidate.period_s;
    bounds.estimate_s = trial.candidate.estimate_s;
    StepShape searched = trial.shape;
    searched.split = false;  // it has the candidates of 1F1B
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

  const ModelSpec& model_;
  const CostModel& cost_;
  const std::vector<CostModel>& with_each_codec_;
  const SearchSpace& space_;
  const PlanOptions& options_;
  Candidates candidates_;
  Trials trials_;
};

bool is_measured(const Profile& profile, const std::string& codec) {
  return std::all_of(profile.devices.begin(), profile.devices.end(),
                     [&](const DeviceProfile& device) { return device.codecs.contains(codec); });
}

// Whether no message of a sum is larger than with the other codec. The estimates of steps know
// nothing else of codecs of gradients.
bool sends_no_more(const CostModel& cost, const CostModel& other) {
  constexpr double kFloats = 1 << 20;
  for (int slot = 0; slot < static_cast<int>(cost.slots().size()); ++slot) {
    if (cost.payload_bytes(slot, kFloats, cost.gradient_codec()) >
        other.payload_bytes(slot, kFloats, other.gradient_codec())) {
      return false;
    }
  }
  return true;
}

// The best over the codecs of gradients, of those whose estimate is below the ceiling; nothing when
// there is none.
Result<std::optional<Planning>> plan_with_each(const ModelSpec& model,
                                               const Cluster& cluster,
                                               const Profile& profile,
                                               const PlanOptions& options,
                                               double ceiling_s) {
  std::vector<CostModel> costs;
  for (const std::string& codec : options.gradient_codecs) {
    if (!costs.empty() && !is_measured(profile, codec)) continue;
    MOTLEY_ASSIGN(CostModel cost, CostModel::make(model, cluster, profile, options.default_threads,
                                                  options.moments_per_parameter, codec));
    for (const auto& [machine, share] : options.pins.memory_share) {
      cost.limit_memory(machine, share);
    }
    MOTLEY_TRY(check_measured(options, cost));
    costs.push_back(std::move(cost));
  }
  MOTLEY_CHECK(!costs.empty(), "no codec of gradients to plan with");
  std::optional<Planning> best;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    // What another one is never estimated longer with needs no search.
    const auto is_beaten_by = [&](std::size_t k) {
      return k != i && sends_no_more(costs[k], costs[i]) &&
             (k > i || !sends_no_more(costs[i], costs[k]));
    };
    const auto others = std::views::iota(std::size_t{0}, costs.size());
    if (std::ranges::any_of(others, is_beaten_by)) continue;
    const SearchSpace space = search_space(options, model, costs[i]);
    MOTLEY_ASSIGN(auto planning, Planner(model, costs[i], costs, space, options).plan(ceiling_s));
    if (!planning) continue;
    if (!best || planning->plan.predicted_step_s < best->plan.predicted_step_s) {
      best = std::move(planning);
    }
  }
  return best;
}

void add_measured(const std::vector<std::string>& codecs,
                  const Profile& profile,
                  std::vector<std::string>& to) {
  std::ranges::copy_if(codecs, std::back_inserter(to),
                       [&](const std::string& codec) { return is_measured(profile, codec); });
}

std::size_t cluster_devices(const Cluster& cluster) {
  std::size_t devices = 0;
  for (const Machine& machine : cluster.machines) devices += machine.devices.size();
  return devices;
}

// `found`, or a better plan whose boundaries all have the last of the codecs: the search for many
// devices knows what each boundary costs only where there is one codec.
Result<std::optional<Planning>> plan_with_last(const ModelSpec& model,
                                               const Cluster& cluster,
                                               const Profile& profile,
                                               PlanOptions options,
                                               double wanted_s,
                                               std::optional<Planning> found) {
  options.codecs = {options.codecs.back()};
  if (found) wanted_s = std::min(wanted_s, found->plan.predicted_step_s);
  MOTLEY_ASSIGN(auto other,
                plan_with_each(model, cluster, profile, options, kEstimateError * wanted_s));
  if (!other || other->plan.predicted_step_s >= wanted_s) return found;
  other->bounds.proven = false;  // with another codec a period may be shorter
  other->bounds.period_bound_s = other->bounds.fluid_period_s;
  other->bounds.granularity_period_s = 0;
  other->bounds.step_bound_s = 0;
  return other;
}

// The best with any codec that the options allow.
Result<Planning> plan_with_coarser(const ModelSpec& model,
                                   const Cluster& cluster,
                                   const Profile& profile,
                                   const PlanOptions& options) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  MOTLEY_ASSIGN(auto found, plan_with_each(model, cluster, profile, options, kAny));
  MOTLEY_CHECK(found.has_value(), "no plan without a ceiling");
  Planning planning = *std::move(found);
  PlanOptions wider = options;
  for (const CoarserCodecs& coarser : options.coarser) {
    const PlanOptions before = wider;
    add_measured(coarser.codecs, profile, wider.codecs);
    add_measured(coarser.gradient_codecs, profile, wider.gradient_codecs);
    if (wider.codecs == before.codecs && wider.gradient_codecs == before.gradient_codecs) continue;
    const double step_s = planning.plan.predicted_step_s;
    if (!options.goes_on(step_s)) break;
    const double wanted_s = (1 - coarser.least_gain) * step_s;
    MOTLEY_ASSIGN(auto shorter,
                  plan_with_each(model, cluster, profile, wider, kEstimateError * wanted_s));
    if (wider.codecs.size() > before.codecs.size() && cluster_devices(cluster) > kExactSlotsMax) {
      MOTLEY_ASSIGN(shorter,
                    plan_with_last(model, cluster, profile, wider, wanted_s, std::move(shorter)));
    }
    if (!shorter || shorter->plan.predicted_step_s > wanted_s) continue;
    note_coarser(coarser, step_s, shorter->plan);
    planning = *std::move(shorter);
  }
  planning.is_complete = options.goes_on(planning.plan.predicted_step_s);
  if (!planning.is_complete) planning.bounds.proven = false;
  return planning;
}

}  // namespace

Result<Planning> plan_in_full(const ModelSpec& model,
                              const Cluster& cluster,
                              const Profile& profile,
                              const PlanOptions& options) {
  MOTLEY_TRY(check_plan_options(options, model, cluster));
  MOTLEY_ASSIGN(Planning best, plan_with_coarser(model, cluster, profile, options));
  const int usual = options.usual_micro_batch;
  if (options.micro_batch > 0 || usual == 0 || best.plan.micro_batch == usual) return best;
  PlanOptions usual_options = options;
  usual_options.micro_batch = usual;
  Result<Planning> planning = plan_with_coarser(model, cluster, profile, usual_options);
  const double best_s = best.plan.predicted_step_s;
  if (planning.ok() &&
      planning->plan.predicted_step_s <= (1 + kUsualLoss) * best_s + kUsualLoss_s) {
    return planning;
  }
  best.plan.notes.push_back(fmt::format(
      "micro-batches of {} samples instead of the usual {}: {}", best.plan.micro_batch, usual,
      planning.ok() ? fmt::format("a step takes {:.4g} s instead of {:.4g} s", best_s,
                                  planning->plan.predicted_step_s)
                    : "a plan with those does not fit"));
  return best;
}

Result<Plan> make_plan(const ModelSpec& model,
                       const Cluster& cluster,
                       const Profile& profile,
                       const PlanOptions& options) {
  MOTLEY_ASSIGN(Planning planning, plan_in_full(model, cluster, profile, options));
  return std::move(planning.plan);
}

bool tied_across_ranks(const ModelSpec& model, const Plan& plan) {
  const auto pair = model.tied_pair();
  if (!pair) return false;
  std::set<Rank> holders;
  for (const ChunkPlan& chunk : plan.chunks) {
    const auto holds = [&](int layer) {
      return chunk.first_layer <= layer && layer < chunk.first_layer + chunk.layer_count;
    };
    if (!holds(pair->owner_layer) && !holds(pair->user_layer)) continue;
    for (const Replica& replica : chunk.replicas) holders.insert(replica.rank);
  }
  return holders.size() > 1;
}

}  // namespace motley
