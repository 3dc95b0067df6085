#include "partitioner/search/trial_changes.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "partitioner/cost/at.h"
#include "partitioner/cost/step_bound.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/period_search/local_search.h"
#include "partitioner/period_search/split_layers.h"
#include "partitioner/search/obey_pins.h"
#include "partitioner/search/trial_memo.h"

namespace motley {
namespace {

// Budgets in simulated actions, and in stages rated in a local search.
constexpr std::int64_t kRefinedActionsMax = 1'000'000;
constexpr std::int64_t kSharedActionsMax = 1'000'000;
constexpr std::int64_t kBothSidesActionsMax = 50'000;
constexpr std::int64_t kObeyedActionsMax = 1'000'000;
constexpr std::int64_t kIdleActionsMax = 100'000;
// The cost of rating a candidate and of its bound, for each of its stages.
constexpr std::int64_t kActionsOfABound = 4;
constexpr long kRefinedWorkMax = 100'000;
// At most this many unused slots are tried on each layer.
constexpr std::size_t kIdleMax = 8;
// Tolerance for equal steps (is_better).
constexpr double kSameStep = 1 + 1e-8;

}  // namespace

std::int64_t actions_of(const StepShape& shape, const Candidate& candidate) {
  constexpr std::int64_t kPerStageAndMicroBatch = 7;
  return kPerStageAndMicroBatch * shape.micro_batches *
         static_cast<std::int64_t>(candidate.stages.size());
}

TrialChanges::TrialChanges(const TrialSetting& setting)
    : setting_(setting), estimates_(setting.space) {}

Result<PlanTrial> TrialChanges::try_one(const CostModel& cost, ShapedCandidate candidate) const {
  const ScheduleFacts* wanted = find_schedule(setting_.options.schedule);
  if (wanted != nullptr) candidate.shape.schedule = wanted->kind;
  setting_.options.count_work(actions_of(candidate.shape, candidate.candidate));
  return try_candidate(setting_.model, cost, setting_.space, candidate.shape,
                       std::move(candidate.candidate));
}

bool TrialChanges::may_refine(std::int64_t actions) {
  return actions < kRefinedActionsMax;
}

bool TrialChanges::obeys_pins(const PlanTrial& trial) {
  return estimates_.of(setting_.cost, trial.shape).obeys_pins(trial.candidate);
}

// Tries a change of `best`; nullopt unless its step is shorter than limit_s.
std::optional<PlanTrial> TrialChanges::try_change(const CostModel& cost,
                                                  const StepShape& shape,
                                                  const Candidate& changed,
                                                  double limit_s,
                                                  std::int64_t& actions) {
  const std::int64_t bounding = kActionsOfABound * static_cast<std::int64_t>(changed.stages.size());
  actions += bounding;
  setting_.options.count_work(bounding);
  if (StepBound(estimates_.of(cost, shape)).least_s(changed) > limit_s) return std::nullopt;
  TrialMemo::Key key = setting_.memo.key_of(cost, setting_.space, shape, changed);
  const auto known_s = setting_.memo.step_s(key);
  if (known_s && *known_s > limit_s) return std::nullopt;
  actions += actions_of(shape, changed);
  auto trial = try_one(cost, {shape, changed});
  setting_.memo.note(std::move(key), trial.ok() ? trial->plan.predicted_step_s
                                                : std::numeric_limits<double>::infinity());
  if (!trial.ok()) return std::nullopt;
  return *std::move(trial);
}

// Each may enable improvements by the other.
void TrialChanges::refine(PlanTrial& best, std::int64_t& actions) {
  do {
    refine_stages(best, actions);
  } while (take_best_order(best, actions));
}

void TrialChanges::refine_stages(PlanTrial& best, std::int64_t& actions) {
  const StepEstimate& estimate = estimates_.of(setting_.cost, best.shape);
  std::vector<int> slots(setting_.cost.slots().size());
  std::iota(slots.begin(), slots.end(), 0);
  const auto takes = [&](Candidate& changed) {
    if (actions >= kRefinedActionsMax || !estimate.rate(changed)) return false;
    const double limit_s = kSameStep * best.plan.predicted_step_s;
    auto trial = try_change(setting_.cost, best.shape, changed, limit_s, actions);
    if (!trial || !is_better(*trial, best)) return false;
    best = *std::move(trial);
    return true;
  };
  Candidate candidate = best.candidate;
  descend(estimate, slots, kRefinedWorkMax, takes, candidate);
}

// Tries the same stages with other schedules; returns whether one is better.
bool TrialChanges::take_best_order(PlanTrial& best, std::int64_t& actions) {
  const PlanTrial before = best;
  for (StepShape shape : step_shapes(setting_.options)) {
    const ScheduleFacts& taken = schedule_facts(before.shape.schedule);
    if (taken.searched_as == shape.schedule) shape.schedule = taken.kind;
    if (shape.micro_batch != before.shape.micro_batch || shape == before.shape) continue;
    if (actions >= kRefinedActionsMax) break;
    const double limit_s = kSameStep * best.plan.predicted_step_s;
    auto trial = try_change(setting_.cost, shape, before.candidate, limit_s, actions);
    if (trial && is_better(*trial, best)) best = *std::move(trial);
  }
  return best.shape != before.shape;
}

bool TrialChanges::obey(PlanTrial& best, std::int64_t& actions) {
  StepShape shape = best.shape;
  const bool splits = permits_schedule(setting_.options.schedule, ScheduleKind::kSplit);
  shape.schedule = splits ? ScheduleKind::kSplit : ScheduleKind::kOneFOneB;
  const StepEstimate& estimate = estimates_.of(setting_.cost, shape);
  while (!estimate.obeys_pins(best.candidate)) {
    std::vector<Candidate> changes;
    for (Candidate& change :
         changes_to_obey(best.candidate, setting_.space, setting_.cost.layer_count())) {
      if (estimate.rate_with_split(change)) changes.push_back(std::move(change));
    }
    std::ranges::stable_sort(changes, {}, &Candidate::estimate_s);
    std::optional<PlanTrial> found;
    for (const Candidate& change : changes) {
      if (found && actions >= kObeyedActionsMax) break;
      const double limit_s =
          found ? found->plan.predicted_step_s : std::numeric_limits<double>::infinity();
      for (const CostModel* cost : setting_.with_each_codec) {
        auto trial = try_change(*cost, shape, change, limit_s, actions);
        if (trial && (!found || is_better(*trial, *found))) found = std::move(trial);
      }
    }
    if (!found) return false;
    best = *std::move(found);
  }
  return true;
}

bool TrialChanges::split_layers_further(const CostModel& cost,
                                        PlanTrial& best,
                                        std::int64_t& actions) {
  int shared = 0;
  while (split_once(cost, best, actions)) ++shared;
  if (shared > 0) shift(cost, best, actions);
  return shared > 0;
}

bool TrialChanges::split_once(const CostModel& cost, PlanTrial& best, std::int64_t& actions) {
  const int layer_count = setting_.cost.layer_count();
  std::vector<int> parts;
  for (int taken = 1; taken < best.shape.micro_batches; taken += (taken + 1) / 2) {
    parts.push_back(taken);
  }
  std::vector<Candidate> changes;
  for (const int taken : parts) {
    std::ranges::move(split_layers(best.candidate, layer_count, taken),
                      std::back_inserter(changes));
  }
  if (take_best(cost, changes, kSplittingGain, kSharedActionsMax, actions, best)) return true;
  if (both_sides_actions_ >= kBothSidesActionsMax) return false;
  changes.clear();
  for (const int first : parts) {
    for (const int second : parts) {
      std::ranges::move(layers_split_on_both_sides(best.candidate, layer_count, first, second),
                        std::back_inserter(changes));
    }
  }
  return take_best(cost, changes, kSplittingGain, kBothSidesActionsMax, both_sides_actions_, best);
}

bool TrialChanges::use_idle(const CostModel& cost, PlanTrial& best, std::int64_t& actions) {
  int taken = 0;
  for (bool better = true; better && actions < kIdleActionsMax; taken += better ? 1 : 0) {
    std::vector<Candidate> changes;
    for (const int slot : idle_slots(best.candidate)) {
      SearchSpace space = setting_.space;
      space.must_use = {{slot}};
      std::ranges::move(changes_to_obey(best.candidate, space, setting_.cost.layer_count()),
                        std::back_inserter(changes));
    }
    better = take_best(cost, changes, kSplittingGain, kIdleActionsMax, actions, best);
  }
  if (taken > 0) shift(cost, best, actions);
  return taken > 0;
}

// Tries other shares and cuts while they shorten the step.
void TrialChanges::shift(const CostModel& cost, PlanTrial& best, std::int64_t& actions) {
  std::vector<Candidate> changes;
  do {
    changes = shifted_splits(best.candidate);
    std::ranges::move(moved_cuts(best.candidate, setting_.cost.layer_count()),
                      std::back_inserter(changes));
  } while (take_best(cost, changes, 0, kSharedActionsMax, actions, best));
}

// Usable slots that the candidate does not use; empty if they are many.
std::vector<int> TrialChanges::idle_slots(const Candidate& candidate) const {
  std::vector<int> idle;
  for (int slot = 0; slot < static_cast<int>(setting_.cost.slots().size()); ++slot) {
    const bool is_usable = setting_.space.usable.empty() || setting_.space.usable[at(slot)];
    const bool is_taken = std::ranges::any_of(candidate.stages, [&](const StageChoice& stage) {
      return std::ranges::find(stage.slots, slot) != stage.slots.end();
    });
    if (is_usable && !is_taken) idle.push_back(slot);
  }
  if (idle.size() > kIdleMax) idle.clear();
  return idle;
}

// Takes the best of the changes if it shortens the step by that share.
bool TrialChanges::take_best(const CostModel& cost,
                             const std::vector<Candidate>& changes,
                             double gain,
                             std::int64_t actions_max,
                             std::int64_t& actions,
                             PlanTrial& best) {
  const StepEstimate& estimate = estimates_.of(cost, best.shape);
  const double least_s = (1 - gain) * best.plan.predicted_step_s;
  std::optional<PlanTrial> found;
  std::vector<std::pair<double, Candidate>> by_bound;
  for (const Candidate& change : changes) {
    Candidate changed = change;
    if (!estimate.rate_with_split(changed) || !estimate.obeys_pins(changed)) continue;
    const double bound_s = StepBound(estimate).least_s(changed);
    if (bound_s <= least_s) by_bound.emplace_back(bound_s, std::move(changed));
  }
  // A short step early rules out the others.
  std::ranges::stable_sort(by_bound, {}, [](const auto& entry) { return entry.first; });
  for (const auto& [bound_s, changed] : by_bound) {
    if (actions >= actions_max) break;
    const double limit_s = found ? found->plan.predicted_step_s : least_s;
    auto trial = try_change(cost, best.shape, changed, kSameStep * limit_s, actions);
    if (trial && is_better(*trial, found ? *found : best)) found = *std::move(trial);
  }
  if (!found || found->plan.predicted_step_s > least_s) return false;
  best = *std::move(found);
  return true;
}

}  // namespace motley
