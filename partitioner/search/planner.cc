#include "partitioner/search/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/shortfall.h"
#include "partitioner/search/trial_search.h"

namespace motley {
namespace {

constexpr std::size_t kAlternatives = 4;
// A period this close to its bound is the least.
constexpr double kProven = 1e-6;

std::string slot_name(const DeviceSlot& slot) {
  return slot.machine + "/" + slot.device;
}

class Planner {
 public:
  Planner(const ModelSpec& model,
          const CostModel& cost,
          const SearchSpace& space,
          const PlanOptions& options)
      : model_(model), cost_(cost), space_(space), options_(options) {}

  Result<Planning> plan() {
    candidates_ = collect_candidates(cost_, space_, options_);
    if (candidates_.all.empty()) return infeasible();
    MOTLEY_ASSIGN(trials_, simulate_candidates(model_, cost_, space_, options_, candidates_));
    Planning planning;
    planning.bounds = bounds_of(trials_.all.front());
    if (trials_.single) planning.single = trials_.single->plan;
    if (trials_.data_parallel) planning.data_parallel = trials_.data_parallel->plan;
    planning.alternatives = alternatives();
    planning.plan = std::move(trials_.all.front().plan);
    add_notes(planning.plan);
    return planning;
  }

 private:
  // Through what the sums between machines go, if there are any.
  void add_codec_note(Plan& plan) const {
    const auto leaves_machine = [&](const ChunkPlan& chunk) {
      return std::ranges::any_of(chunk.replicas, [&](const Replica& replica) {
        return plan.ranks[replica.rank.index()].machine !=
               plan.ranks[chunk.replicas.front().rank.index()].machine;
      });
    };
    if (plan.gradient_codec == "none" || std::ranges::none_of(plan.chunks, leaves_machine)) return;
    constexpr double kFloats = 1 << 20;
    constexpr double kBytes = 4 * kFloats;
    const int slot = 0;
    plan.notes.push_back(fmt::format(
        "gradients cross between machines as {}: {:.1f} times fewer bytes, encoded at {:.1f} and "
        "decoded at {:.1f} GB/s of fp32 on {}",
        plan.gradient_codec, kBytes / cost_.payload_bytes(slot, kFloats, plan.gradient_codec),
        kBytes / cost_.encode_s(slot, kFloats, plan.gradient_codec) / 1e9,
        kBytes / cost_.decode_s(slot, kFloats, plan.gradient_codec) / 1e9,
        slot_name(cost_.slots()[slot])));
  }

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

  void add_notes(Plan& plan) const {
    add_codec_note(plan);
    const auto single_name = [&] { return name_of(trials_.single->plan.ranks.front()); };
    if (plan.rank_count() > 1 && trials_.single) {
      plan.notes.push_back(fmt::format(
          "the group is {:.2f} times as fast as {} alone ({:.4g} s a step instead of {:.4g} s)",
          trials_.single->plan.predicted_step_s / plan.predicted_step_s, single_name(),
          plan.predicted_step_s, trials_.single->plan.predicted_step_s));
    } else if (plan.rank_count() > 1) {
      plan.notes.push_back("no single device can hold the whole model");
    } else if (cost_.slots().size() > 1 && trials_.single) {
      plan.notes.push_back(fmt::format("{} alone is faster than any group", single_name()));
    }
    const std::string left_out = left_out_names(plan);
    if (left_out.empty()) return;
    const bool chosen = options_.stages == 0 && options_.cuts.empty();
    plan.notes.push_back(
        fmt::format("left out: {} ({})", left_out,
                    chosen ? "the step is not shorter with it" : "the number of stages was given"));
  }

  static std::string name_of(const RankPlan& rank) { return rank.machine + "/" + rank.device; }

  std::string left_out_names(const Plan& plan) const {
    std::vector<std::string> used;
    for (const RankPlan& rank : plan.ranks) used.push_back(name_of(rank));
    std::vector<std::string> names;
    for (const DeviceSlot& slot : cost_.slots()) {
      const auto found = std::find(used.begin(), used.end(), slot_name(slot));
      if (found == used.end()) {
        names.push_back(slot_name(slot));
      } else {
        used.erase(found);  // several slots may have one name
      }
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // The stage that misses memory where the model comes nearest to fitting.
  Error infeasible() const {
    std::optional<Shortfall> least;
    StepShape least_shape;
    for (const StepShape& shape : step_shapes(options_)) {
      const StageTable table(cost_, shape);
      const bool recompute = space_.recompute != Recompute::kNever;
      const Shortfall shortfall = options_.cuts.empty()
                                      ? smallest_shortfall(table, space_, recompute)
                                      : shortfall_of(table, given_stages(options_), recompute);
      if (least && least->missing_bytes <= shortfall.missing_bytes) continue;
      least = shortfall;
      least_shape = shape;
    }
    if (least->missing_bytes <= 0) {
      return {ErrorCode::kConfig, "no plan obeys the pins",
              "the model would fit without them, but not so", "take a pin away"};
    }
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    const DeviceSlot& slot = cost_.slots()[static_cast<std::size_t>(least->slot)];
    const auto layer_name = [&](int l) { return model_.layers[static_cast<std::size_t>(l)].name; };
    return {ErrorCode::kInfeasible,
            fmt::format("the model does not fit: {} is short of {:.3g} GiB memory", slot_name(slot),
                        static_cast<double>(least->missing_bytes) / kGib),
            fmt::format("even in the best cut, layers {} … {} with micro-batches of {} need {:.3g} "
                        "GiB of its {:.3g} GiB",
                        layer_name(least->first_layer), layer_name(least->last_layer - 1),
                        least_shape.micro_batch, static_cast<double>(least->needed_bytes) / kGib,
                        static_cast<double>(slot.memory_bytes) / kGib),
            "add a machine or memory, or make the model or train.micro_batch smaller"};
  }

  const ModelSpec& model_;
  const CostModel& cost_;
  const SearchSpace& space_;
  const PlanOptions& options_;
  Candidates candidates_;
  Trials trials_;
};

bool is_measured(const Profile& profile, const std::string& codec) {
  return std::all_of(profile.devices.begin(), profile.devices.end(),
                     [&](const DeviceProfile& device) { return device.codecs.contains(codec); });
}

Result<Planning> plan_with(const ModelSpec& model,
                           const Cluster& cluster,
                           const Profile& profile,
                           const PlanOptions& options,
                           const std::string& gradient_codec) {
  MOTLEY_ASSIGN(CostModel cost, CostModel::make(model, cluster, profile, options.default_threads,
                                                options.moments_per_parameter, gradient_codec));
  for (const auto& [machine, share] : options.pins.memory_share) cost.limit_memory(machine, share);
  MOTLEY_TRY(check_measured(options, cost));
  const SearchSpace space = search_space(options, model, cost);
  return Planner(model, cost, space, options).plan();
}

// The best over the codecs of gradients.
Result<Planning> plan_with_each(const ModelSpec& model,
                                const Cluster& cluster,
                                const Profile& profile,
                                const PlanOptions& options) {
  std::optional<Planning> best;
  for (const std::string& codec : options.gradient_codecs) {
    if (best && !is_measured(profile, codec)) continue;
    MOTLEY_ASSIGN(Planning planning, plan_with(model, cluster, profile, options, codec));
    const double step_s = planning.plan.predicted_step_s;
    if (!best || step_s < best->plan.predicted_step_s) best = std::move(planning);
  }
  MOTLEY_CHECK(best.has_value(), "no codec of gradients to plan with");
  return *std::move(best);
}

void add_measured(const std::vector<std::string>& codecs,
                  const Profile& profile,
                  std::vector<std::string>& to) {
  std::ranges::copy_if(codecs, std::back_inserter(to),
                       [&](const std::string& codec) { return is_measured(profile, codec); });
}

// What of the coarser codecs the plan takes, and what for.
void note_coarser(const CoarserCodecs& coarser, double step_s, Plan& plan) {
  std::vector<std::string> taken;
  for (const std::string& codec : coarser.codecs) {
    const auto is_taken = [&](const ChunkPlan& chunk) { return chunk.codec == codec; };
    if (std::ranges::any_of(plan.chunks, is_taken)) taken.push_back("activations as " + codec);
  }
  if (std::ranges::find(coarser.gradient_codecs, plan.gradient_codec) !=
      coarser.gradient_codecs.end()) {
    taken.push_back("gradients as " + plan.gradient_codec);
  }
  plan.notes.push_back(
      fmt::format("crossing with more rounding: {}; without it a step takes {:.4g} s "
                  "(docs/compression.md tells what it does to learning; [compression] forbids it)",
                  fmt::join(taken, ", "), step_s));
}

}  // namespace

Result<Planning> plan_in_full(const ModelSpec& model,
                              const Cluster& cluster,
                              const Profile& profile,
                              const PlanOptions& options) {
  MOTLEY_TRY(check_plan_options(options, model, cluster));
  MOTLEY_ASSIGN(Planning planning, plan_with_each(model, cluster, profile, options));
  PlanOptions wider = options;
  for (const CoarserCodecs& coarser : options.coarser) {
    const PlanOptions before = wider;
    add_measured(coarser.codecs, profile, wider.codecs);
    add_measured(coarser.gradient_codecs, profile, wider.gradient_codecs);
    if (wider.codecs == before.codecs && wider.gradient_codecs == before.gradient_codecs) continue;
    MOTLEY_ASSIGN(Planning shorter, plan_with_each(model, cluster, profile, wider));
    const double step_s = planning.plan.predicted_step_s;
    if (shorter.plan.predicted_step_s > (1 - coarser.least_gain) * step_s) continue;
    note_coarser(coarser, step_s, shorter.plan);
    planning = std::move(shorter);
  }
  return planning;
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
