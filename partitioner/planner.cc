#include "partitioner/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "partitioner/candidates.h"
#include "partitioner/cost_model.h"
#include "partitioner/fold.h"
#include "partitioner/plan_trial.h"
#include "partitioner/polish.h"
#include "partitioner/shortfall.h"
#include "partitioner/step_estimate.h"

namespace motley {
namespace {

// The best estimates are simulated as long as their actions stay below the budget.
constexpr std::int64_t kSimulatedActionsMax = 300'000;
// Changes to the best of them are simulated within a second budget.
constexpr std::int64_t kRefinedActionsMax = 1'000'000;
constexpr long kRefinedWorkMax = 100'000;
constexpr std::int64_t kActionsPerStageAndMicroBatch = 7;
constexpr std::size_t kAlternatives = 4;
constexpr std::size_t kSplitTrials = 8;
// The best of so many pairs of number of stages and size of micro-batches are folded, with so many
// times the window of 1F1B in flight.
constexpr std::size_t kFoldStarts = 12;
constexpr std::array kFoldWarmUps = {1, 3, 6};
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
    MOTLEY_TRY(simulate());
    Planning planning;
    planning.bounds = bounds_of(trials_.front());
    if (single_) planning.single = single_->plan;
    if (data_parallel_) planning.data_parallel = data_parallel_->plan;
    planning.alternatives = alternatives();
    planning.plan = std::move(trials_.front().plan);
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
        plan.gradient_codec, kBytes / cost_.wire_bytes(slot, kFloats, plan.gradient_codec),
        kBytes / cost_.encode_s(slot, kFloats, plan.gradient_codec) / 1e9,
        kBytes / cost_.decode_s(slot, kFloats, plan.gradient_codec) / 1e9,
        slot_name(cost_.slots()[slot])));
  }

  // Fills trials_, best first, single_ and data_parallel_.
  Result<void> simulate() {
    std::int64_t actions = 0;
    for (const ShapedCandidate& candidate : candidates_.all) {
      if (!trials_.empty() && actions > kSimulatedActionsMax) break;
      actions += actions_of(candidate.shape, candidate.candidate);
      MOTLEY_ASSIGN(std::optional<PlanTrial> trial, try_if_it_fits(candidate));
      if (trial) trials_.push_back(*std::move(trial));
    }
    // Only with split backward, whose memory the estimates do not know of.
    if (trials_.empty()) return try_one(candidates_.all.front()).error();
    if (options_.schedule == "auto" && cost_.check_split().ok()) split_the_best();
    if (options_.cuts.empty()) {
      refine();
      fold_the_best();
    }
    const bool free = options_.cuts.empty() && options_.stages <= 1;
    if (candidates_.single) {
      MOTLEY_ASSIGN(single_, try_if_it_fits(*candidates_.single));
      if (free && single_) trials_.push_back(*single_);
    }
    if (candidates_.data_parallel) {
      MOTLEY_ASSIGN(data_parallel_, try_if_it_fits(*candidates_.data_parallel));
      if (free && data_parallel_) trials_.push_back(*data_parallel_);
    }
    std::stable_sort(trials_.begin(), trials_.end(), is_better);
    return {};
  }

  // Which devices and cuts are best depends little on whether backward is split, so that is tried
  // on the best of 1F1B; refining goes on from there.
  void split_the_best() {
    std::stable_sort(trials_.begin(), trials_.end(), is_better);
    std::vector<PlanTrial> found;
    for (const PlanTrial& trial : trials_) {
      if (found.size() == kSplitTrials) break;
      if (trial.shape.gpipe || trial.candidate.stages.size() < 2) continue;
      StepShape shape = trial.shape;
      shape.split = true;
      auto split = try_one({shape, trial.candidate});
      if (split.ok()) found.push_back(*std::move(split));
    }
    std::move(found.begin(), found.end(), std::back_inserter(trials_));
  }

  // With the head beside the embedding their tied parameter needs no sum over a link, for one
  // boundary more: less on slow links. Only list scheduling runs two chunks of one rank well. The
  // searches know no such stages, so it is tried on what they find where nothing is tied.
  void fold_the_best() {
    const bool may_split = options_.schedule == "auto" || options_.schedule == "split";
    if (!may_split || !cost_.check_split().ok()) return;
    if (cost_.tied_parameters() == 0 || options_.stages != 0) return;
    const Candidates starts = collect_candidates(cost_.without_tied(), space_, options_);
    std::set<std::pair<std::size_t, int>> seen;
    std::vector<PlanTrial> found;
    std::int64_t actions = 0;
    for (const ShapedCandidate& unfolded : starts.all) {
      if (seen.size() == kFoldStarts) break;
      if (!seen.emplace(unfolded.candidate.stages.size(), unfolded.shape.micro_batch).second) {
        continue;
      }
      for (const Candidate& folded : folds(unfolded.candidate, cost_.layer_count())) {
        for (const int warm_up : kFoldWarmUps) {
          StepShape shape = unfolded.shape;
          shape.gpipe = false;
          shape.split = true;
          shape.warm_up = warm_up;
          auto start = try_one({shape, folded});
          if (!start.ok()) continue;
          refine(*start, actions);
          found.push_back(*std::move(start));
        }
      }
    }
    std::move(found.begin(), found.end(), std::back_inserter(trials_));
  }

  // The estimate leaves out how hops and stages meet in time, so a neighbour of a good trial may be
  // simulated shorter: of the best of each shape first, then of the others.
  void refine() {
    std::stable_sort(trials_.begin(), trials_.end(), is_better);
    std::vector<StepShape> seen;
    std::vector<PlanTrial> starts = trials_;
    std::stable_partition(starts.begin(), starts.end(), [&](const PlanTrial& trial) {
      if (std::find(seen.begin(), seen.end(), trial.shape) != seen.end()) return false;
      seen.push_back(trial.shape);
      return true;
    });
    std::int64_t actions = 0;
    for (PlanTrial& best : starts) {
      if (actions >= kRefinedActionsMax) break;
      refine(best, actions);
      trials_.push_back(std::move(best));
    }
  }

  void refine(PlanTrial& best, std::int64_t& actions) const {
    const StageTable table(cost_, best.shape);
    const StepEstimate estimate(table, space_);
    std::vector<int> slots(cost_.slots().size());
    std::iota(slots.begin(), slots.end(), 0);
    const auto takes = [&](Candidate& changed) {
      if (actions >= kRefinedActionsMax || !estimate.rate(changed)) return false;
      actions += actions_of(best.shape, changed);
      auto trial = try_one({best.shape, changed});
      if (!trial.ok() || !is_better(*trial, best)) return false;
      best = *std::move(trial);
      return true;
    };
    Candidate candidate = best.candidate;
    descend(estimate, slots, kRefinedWorkMax, takes, candidate);
  }

  static std::int64_t actions_of(const StepShape& shape, const Candidate& candidate) {
    return kActionsPerStageAndMicroBatch * shape.micro_batches *
           static_cast<std::int64_t>(candidate.stages.size());
  }

  Result<PlanTrial> try_one(ShapedCandidate candidate) const {
    if (options_.schedule == "split") candidate.shape.split = true;
    return try_candidate(model_, cost_, space_, candidate.shape, std::move(candidate.candidate));
  }

  // Nothing where memory is short.
  Result<std::optional<PlanTrial>> try_if_it_fits(const ShapedCandidate& candidate) const {
    auto trial = try_one(candidate);
    if (trial.ok()) return std::optional(*std::move(trial));
    if (trial.error().code == ErrorCode::kInfeasible) return std::optional<PlanTrial>();
    return trial.error();
  }

  // Of those that differ in more than the schedule.
  std::vector<Plan> alternatives() const {
    std::vector<const PlanTrial*> told = {&trials_.front()};
    std::vector<Plan> plans;
    for (const PlanTrial& trial : trials_) {
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
    const auto single_name = [&] { return name_of(single_->plan.ranks.front()); };
    if (plan.rank_count() > 1 && single_) {
      plan.notes.push_back(fmt::format(
          "the group is {:.2f} times as fast as {} alone ({:.4g} s a step instead of {:.4g} s)",
          single_->plan.predicted_step_s / plan.predicted_step_s, single_name(),
          plan.predicted_step_s, single_->plan.predicted_step_s));
    } else if (plan.rank_count() > 1) {
      plan.notes.push_back("no single device can hold the whole model");
    } else if (cost_.slots().size() > 1 && single_) {
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
  std::vector<PlanTrial> trials_;
  std::optional<PlanTrial> single_;
  std::optional<PlanTrial> data_parallel_;
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
  MOTLEY_ASSIGN(CostModel cost,
                CostModel::make(model, cluster, profile, options.default_threads,
                                options.optimizer_floats_per_parameter, gradient_codec));
  for (const auto& [machine, share] : options.pins.memory_share) cost.limit_memory(machine, share);
  MOTLEY_TRY(check_plan_options(options, cost));
  MOTLEY_ASSIGN(const SearchSpace space, search_space(options, model, cost));
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

}  // namespace

Result<Planning> plan_in_full(const ModelSpec& model,
                              const Cluster& cluster,
                              const Profile& profile,
                              const PlanOptions& options) {
  if (model.layers.empty()) {
    return Error{ErrorCode::kConfig, "the model has no layers", "", ""};
  }
  MOTLEY_TRY(check_planning_size(model, cluster));
  MOTLEY_TRY(check_pins(options.pins, model.layer_names(), cluster));
  MOTLEY_ASSIGN(Planning planning, plan_with_each(model, cluster, profile, options));
  PlanOptions coarser = options;
  add_measured(options.coarser_codecs, profile, coarser.codecs);
  add_measured(options.coarser_gradient_codecs, profile, coarser.gradient_codecs);
  if (coarser.codecs == options.codecs && coarser.gradient_codecs == options.gradient_codecs) {
    return planning;
  }
  MOTLEY_ASSIGN(Planning shorter, plan_with_each(model, cluster, profile, coarser));
  const double step_s = planning.plan.predicted_step_s;
  if (shorter.plan.predicted_step_s > (1 - kCoarserGain) * step_s) return planning;
  shorter.plan.notes.push_back(
      fmt::format("some messages cross as {}: without it the step would take {:.4g} s",
                  fmt::join(options.coarser_codecs.empty() ? options.coarser_gradient_codecs
                                                           : options.coarser_codecs,
                            ", "),
                  step_s));
  return shorter;
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
