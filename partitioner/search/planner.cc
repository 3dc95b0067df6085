#include "partitioner/search/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/period_search/exact_search.h"
#include "partitioner/search/plan_notes.h"
#include "partitioner/search/plan_with_costs.h"
#include "partitioner/search/round_plan.h"
#include "partitioner/search/trial_memo.h"

namespace motley {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
// The usual micro-batch may make the step longer by this share and this many seconds, the scatter
// of predictions, which is largest for the shortest steps. A choice by noise would differ at the
// next start.
constexpr double kUsualLoss = 0.3;
constexpr double kUsualLoss_s = 0.01;

bool is_measured(const Profile& profile, const std::string& codec) {
  return std::all_of(profile.devices.begin(), profile.devices.end(),
                     [&](const DeviceProfile& device) { return device.codecs.contains(codec); });
}

// Whether no message of an all-reduce is larger than with the other codec. The estimates model
// nothing else about codecs of gradients.
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

// Whether another codec never has a longer estimate, so that a search with this one is unnecessary.
bool is_beaten(const CostModels& costs, std::size_t i) {
  for (std::size_t k = 0; k < costs.size(); ++k) {
    if (k == i || !sends_no_more(*costs[k], *costs[i])) continue;
    if (k > i || !sends_no_more(*costs[i], *costs[k])) return true;
  }
  return false;
}

std::size_t cluster_devices(const Cluster& cluster) {
  std::size_t devices = 0;
  for (const Machine& machine : cluster.machines) devices += machine.devices.size();
  return devices;
}

double step_of(const std::optional<Planning>& planning) {
  return planning ? planning->plan.predicted_step_s : kAny;
}

// Nested choices: coarser codecs if they pay, the micro-batch size, the codec of gradients.
class ChoiceSearch {
 public:
  ChoiceSearch(const ModelSpec& model,
               const Cluster& cluster,
               const Profile& profile,
               const PlanOptions& options)
      : model_(model), cluster_(cluster), profile_(profile), options_(options) {}

  Result<Planning> run() {
    MOTLEY_ASSIGN(auto found, with_best_size(options_, kAny));
    MOTLEY_CHECK(found.has_value(), "no plan without a ceiling");
    Planning planning = *std::move(found);
    PlanOptions wider = options_;
    for (const CoarserCodecs& coarser : options_.coarser) {
      const PlanOptions before = wider;
      add_measured(coarser.codecs, wider.codecs);
      add_measured(coarser.gradient_codecs, wider.gradient_codecs);
      adds_boundary_codec_ = wider.codecs != before.codecs;
      if (!adds_boundary_codec_ && wider.gradient_codecs == before.gradient_codecs) continue;
      const double step_s = planning.plan.predicted_step_s;
      if (!options_.may_continue(step_s)) break;
      MOTLEY_ASSIGN(auto shorter, with_best_size(wider, (1 - coarser.least_gain) * step_s));
      if (!shorter) continue;
      note_coarser(coarser, step_s, shorter->plan);
      planning = *std::move(shorter);
    }
    planning.is_complete = options_.may_continue(planning.plan.predicted_step_s);
    if (!planning.is_complete) planning.bounds.proven = false;
    note_size(planning.plan);
    return planning;
  }

 private:
  using Found = Result<std::optional<Planning>>;

  void add_measured(const std::vector<std::string>& codecs, std::vector<std::string>& to) const {
    std::ranges::copy_if(codecs, std::back_inserter(to),
                         [&](const std::string& codec) { return is_measured(profile_, codec); });
  }

  // The functions below return the best plan with a step of at most wanted_s, or nullopt if there
  // is none; kInfeasible if nothing fits and wanted_s is infinite.

  // With the usual micro-batch, unless another size makes the step much shorter.
  Found with_best_size(const PlanOptions& options, double wanted_s) {
    const int usual = options.usual_micro_batch;
    if (options.micro_batch > 0 || usual == 0) return with_any_codec(options, wanted_s);
    PlanOptions of_usual = options;
    of_usual.micro_batch = usual;
    // Other sizes are compared with its best step for these codecs, also if that exceeds wanted_s.
    Found found =
        with_any_codec(of_usual, usual_s_ < kAny ? std::max(wanted_s, usual_s_) : wanted_s);
    if (!found.ok() && found.error().code != ErrorCode::kInfeasible) return found;
    if (found.ok()) {
      usual_s_ = std::min(usual_s_, step_of(*found));
      if (step_of(*found) > wanted_s) found = std::optional<Planning>();
    }
    PlanOptions of_others = options;
    of_others.micro_batch_left_out = usual;
    if (!micro_batch_sizes(of_others).empty() && options.may_continue(usual_s_)) {
      Found other = with_any_codec(
          of_others, std::min(wanted_s, (usual_s_ - kUsualLoss_s) / (1 + kUsualLoss)));
      if (other.ok() ? other->has_value() : other.error().code != ErrorCode::kInfeasible) {
        return other;
      }
    }
    // The memory deficit is reported over all sizes.
    return found.ok() ? found : with_any_codec(options, wanted_s);
  }

  // Chooses among the codecs for boundaries. The search for many devices or layers knows the cost
  // of each boundary only if there is one codec, so the last codec is also tried for all
  // boundaries.
  Found with_any_codec(const PlanOptions& options, double wanted_s) {
    MOTLEY_ASSIGN(auto found, with_any_gradient_codec(options, wanted_s));
    const bool is_small = cluster_devices(cluster_) <= kExactSlotsMax &&
                          model_.layers.size() <= std::size_t{kExactLayersMax};
    if (!adds_boundary_codec_ || is_small) return found;
    PlanOptions of_last = options;
    of_last.codecs = {options.codecs.back()};
    MOTLEY_ASSIGN(auto other, with_any_gradient_codec(of_last, std::min(wanted_s, step_of(found))));
    if (!other || step_of(other) >= step_of(found)) return found;
    other->bounds.proven = false;  // another codec may give a shorter period
    other->bounds.period_bound_s = other->bounds.fluid_period_s;
    other->bounds.granularity_period_s = 0;
    other->bounds.step_bound_s = 0;
    return other;
  }

  Found with_any_gradient_codec(const PlanOptions& options, double wanted_s) {
    CostModels costs;
    for (const std::string& codec : options.gradient_codecs) {
      if (!costs.empty() && !is_measured(profile_, codec)) continue;
      MOTLEY_ASSIGN(const CostModel* cost, cost_with(codec));
      MOTLEY_TRY(check_measured(options, *cost));
      costs.push_back(cost);
    }
    MOTLEY_CHECK(!costs.empty(), "no codec of gradients to plan with");
    std::optional<Planning> best;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (is_beaten(costs, i)) continue;
      const SearchSpace space = search_space(options, model_, *costs[i]);
      MOTLEY_ASSIGN(auto planning,
                    plan_with_costs({model_, *costs[i], costs, space, options, memo_}, wanted_s));
      if (planning && step_of(planning) < step_of(best)) best = std::move(planning);
    }
    return best;
  }

  Result<const CostModel*> cost_with(const std::string& gradient_codec) {
    const auto known = std::ranges::find(costs_, gradient_codec, &CostModel::gradient_codec);
    if (known != costs_.end()) return &*known;
    MOTLEY_ASSIGN(CostModel cost,
                  CostModel::make(model_, cluster_, profile_, options_.default_threads,
                                  options_.process_state, gradient_codec));
    for (const auto& [machine, share] : options_.pins.memory_share) {
      cost.limit_memory(machine, share);
    }
    return &costs_.emplace_back(std::move(cost));
  }

  void note_size(Plan& plan) const {
    const int usual = options_.usual_micro_batch;
    if (options_.micro_batch > 0 || usual == 0 || plan.micro_batch == usual) return;
    plan.notes.push_back(
        fmt::format("micro-batches of {} {} instead of the default {}: {}", plan.micro_batch,
                    plan.micro_batch == 1 ? "sample" : "samples", usual,
                    usual_s_ < kAny ? fmt::format("a step takes {:.4g} s instead of {:.4g} s",
                                                  plan.predicted_step_s, usual_s_)
                                    : "a plan with the default does not fit"));
  }

  const ModelSpec& model_;
  const Cluster& cluster_;
  const Profile& profile_;
  const PlanOptions& options_;
  std::deque<CostModel> costs_;
  TrialMemo memo_;
  bool adds_boundary_codec_ = false;  // to the codecs searched before
  double usual_s_ = kAny;             // the shortest step with the usual micro-batch
};

}  // namespace

Result<Planning> plan_in_full(const ModelSpec& model,
                              const Cluster& cluster,
                              const Profile& profile,
                              const PlanOptions& options) {
  MOTLEY_TRY(check_plan_options(options, model, cluster));
  MOTLEY_ASSIGN(Planning synchronous, ChoiceSearch(model, cluster, profile, options).run());
  if (!options.rounds || !permits_rounds(options)) return synchronous;
  return with_rounds(model, cluster, profile, options, std::move(synchronous));
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
  std::set<Rank> group_members;
  for (const ChunkPlan& chunk : plan.chunks) {
    const auto holds = [&](int layer) {
      return chunk.first_layer <= layer && layer < chunk.first_layer + chunk.layer_count;
    };
    if (!holds(pair->owner_layer) && !holds(pair->user_layer)) continue;
    for (const Replica& replica : chunk.replicas) group_members.insert(replica.rank);
  }
  return group_members.size() > 1;
}

}  // namespace motley
