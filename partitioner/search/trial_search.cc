#include "partitioner/search/trial_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "partitioner/search/tied_ends.h"
#include "partitioner/search/trial_changes.h"

namespace motley {
namespace {

// The best estimates are simulated while their actions are within this budget.
constexpr std::int64_t kSimulatedActionsMax = 300'000;
constexpr std::size_t kSplitTrials = 8;
// At most this many of the best are tried with each codec of gradients.
constexpr std::size_t kCodecTrials = 8;
// Small changes hardly ever shorten a step by more than this factor.
constexpr double kFarOff = 1.5;
// For at most this many of the best pairs of number of stages and micro-batch size, the ends are
// placed on one device, with these multiples of 1F1B's window in flight.
constexpr std::size_t kTiedEndStarts = 12;
constexpr std::array kTiedEndWarmUps = {1, 3, 6};
// At most this many of the best trials share layers, within a budget of their own.
constexpr std::size_t kShareStarts = 6;
// At most this many plans that violate pins are changed until they satisfy them, each within a
// budget.
constexpr std::size_t kObeyStarts = 4;

class TrialSearch {
 public:
  TrialSearch(const TrialSetting& setting, const Candidates& candidates, double wanted_s)
      : setting_(setting), candidates_(candidates), wanted_s_(wanted_s), changes_(setting) {}

  Result<Trials> run() {
    std::int64_t actions = 0;
    for (const ShapedCandidate& candidate : candidates_.all) {
      if (!found_.all.empty() && actions > kSimulatedActionsMax) break;
      if (candidate.candidate.estimate_s > kEstimateError * wanted_s_ || !may_continue()) break;
      actions += actions_of(candidate.shape, candidate.candidate);
      MOTLEY_ASSIGN(std::optional<PlanTrial> trial, try_if_it_fits(candidate));
      if (trial) found_.all.push_back(*std::move(trial));
    }
    // Only with split backward, which needs memory that the estimates do not model.
    if (found_.all.empty() && !candidates_.all.empty() && std::isinf(wanted_s_)) {
      return changes_.try_one(setting_.cost, candidates_.all.front()).error();
    }
    const bool free = setting_.options.cuts.empty() && setting_.options.stages <= 1;
    if (candidates_.single) {
      MOTLEY_ASSIGN(found_.single, try_if_it_fits(*candidates_.single));
      if (free && found_.single) found_.all.push_back(*found_.single);
    }
    for (const ShapedCandidate& candidate : candidates_.data_parallel) {
      MOTLEY_ASSIGN(std::optional<PlanTrial> trial, try_if_it_fits(candidate));
      if (!trial) continue;
      if (free) found_.all.push_back(*trial);
      std::optional<PlanTrial>& best = found_.data_parallel;
      if (!best || is_better(*trial, *best)) best = std::move(trial);
    }
    if (setting_.options.schedule == "auto" && may_split()) split_the_best();
    if (setting_.options.cuts.empty()) {
      refine();
      tie_ends_of_the_best();
      MOTLEY_TRY(obey_with_the_best());
      share_the_best();
      use_idle_with_the_best();
    }
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    choose_gradient_codecs();
    return std::move(found_);
  }

 private:
  // The best devices and cuts depend little on whether backward is split, so that is tried on the
  // best of 1F1B; refinement continues from there.
  void split_the_best() {
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    std::vector<PlanTrial> found;
    for (const PlanTrial& trial : found_.all) {
      if (found.size() == kSplitTrials) break;
      const bool is_1f1b = trial.shape.schedule == ScheduleKind::kOneFOneB;
      if (!is_1f1b || trial.candidate.stages.size() < 2) continue;
      StepShape shape = trial.shape;
      shape.schedule = ScheduleKind::kSplit;
      auto split = changes_.try_one(setting_.cost, {shape, trial.candidate});
      if (split.ok()) found.push_back(*std::move(split));
    }
    std::move(found.begin(), found.end(), std::back_inserter(found_.all));
  }

  bool may_split() const {
    return permits_schedule(setting_.options.schedule, ScheduleKind::kSplit) &&
           setting_.cost.check_split().ok();
  }

  // A stopped search still returns a trial, if there is one.
  bool may_continue() const {
    if (found_.all.empty()) return true;
    const PlanTrial& best = *std::ranges::min_element(found_.all, is_better);
    return setting_.options.may_continue(best.plan.predicted_step_s);
  }

  // No small changes can make it the best.
  bool is_far(const PlanTrial& trial) const {
    return trial.plan.predicted_step_s > kFarOff * found_best_s();
  }

  double found_best_s() const {
    if (found_.all.empty()) return wanted_s_;
    const PlanTrial& best = *std::ranges::min_element(found_.all, is_better);
    return std::min(wanted_s_, best.plan.predicted_step_s);
  }

  // With the head and the embedding on one device, their tied parameter needs no all-reduce over a
  // link, at the cost of one more boundary, which is less on slow links. Only list scheduling runs
  // two chunks of one rank well. The searches do not consider such stages, so this starts from
  // their results for the untied model.
  void tie_ends_of_the_best() {
    if (!may_split()) return;
    if (setting_.cost.sizes().tied_parameters() == 0 || setting_.options.stages != 0) return;
    // This adds a boundary to its origin, and both ends are on one slot.
    SearchSpace pipelines = setting_.space;
    pipelines.replicas = false;
    const double ceiling_s = kEstimateError * found_best_s();
    const std::vector<ShapedCandidate> starts =
        candidates_.untied.empty() ? collect_candidates(setting_.cost.without_tied(), pipelines,
                                                        setting_.options, ceiling_s)
                                         .all
                                   : candidates_.untied;
    std::set<std::pair<std::size_t, int>> seen;
    std::vector<PlanTrial> found;
    for (const ShapedCandidate& unfolded : starts) {
      if (seen.size() == kTiedEndStarts || !may_continue() ||
          unfolded.candidate.estimate_s > ceiling_s)
        break;
      if (!seen.emplace(unfolded.candidate.stages.size(), unfolded.shape.micro_batch).second) {
        continue;
      }
      for (const Candidate& folded :
           tied_end_candidates(unfolded.candidate, setting_.cost.layer_count())) {
        for (const int warm_up : kTiedEndWarmUps) {
          StepShape shape = unfolded.shape;
          shape.schedule = ScheduleKind::kSplit;
          shape.warm_up = warm_up;
          auto start = changes_.try_one(setting_.cost, {shape, folded});
          if (start.ok() && changes_.obeys_pins(*start)) found.push_back(*std::move(start));
        }
      }
    }
    std::ranges::stable_sort(found, is_better);
    std::int64_t actions = 0;
    for (PlanTrial& best : found) {
      if (!TrialChanges::may_refine(actions) || !may_continue() || is_far(best)) break;
      changes_.refine(best, actions);
    }
    std::move(found.begin(), found.end(), std::back_inserter(found_.all));
  }

  // The estimate does not model how hops and stages interact in time, so a neighbour of a good
  // trial may have a shorter simulated step. Starts with the best of each shape, then the others.
  void refine() {
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    std::vector<StepShape> seen;
    std::vector<PlanTrial> starts = found_.all;
    std::stable_partition(starts.begin(), starts.end(), [&](const PlanTrial& trial) {
      if (std::find(seen.begin(), seen.end(), trial.shape) != seen.end()) return false;
      seen.push_back(trial.shape);
      return true;
    });
    std::int64_t actions = 0;
    for (PlanTrial& best : starts) {
      if (!TrialChanges::may_refine(actions) || !may_continue()) break;
      if (is_far(best)) continue;
      changes_.refine(best, actions);
      found_.all.push_back(std::move(best));
    }
  }

  // Changes the best plans without pins as little as possible to satisfy the pins.
  Result<void> obey_with_the_best() {
    if (setting_.space.must_use.empty() && setting_.space.may_hold.empty()) return {};
    if (setting_.options.stages != 0 || !setting_.cost.check_split().ok()) return {};
    SearchSpace free = setting_.space;
    free.must_use.clear();
    free.may_hold.clear();
    const Candidates candidates =
        collect_candidates(setting_.cost, free, setting_.options, kEstimateError * wanted_s_);
    if (candidates.all.empty()) return {};
    TrialSearch search({setting_.model, setting_.cost, setting_.with_each_codec, free,
                        setting_.options, setting_.memo},
                       candidates, wanted_s_);
    MOTLEY_ASSIGN(const Trials trials, search.run());
    std::set<std::pair<std::size_t, int>> seen;
    for (const PlanTrial& trial : trials.all) {
      if (seen.size() == kObeyStarts || !may_continue()) break;
      if (trial.shape.schedule == ScheduleKind::kGpipe ||
          !seen.emplace(trial.candidate.stages.size(), trial.shape.micro_batch).second) {
        continue;
      }
      std::int64_t actions = 0;
      PlanTrial changed = trial;
      // It usually shares a layer, which must pay.
      const double wanted_s = (1 - kSplittingGain) * found_best_s();
      if (changes_.obey(changed, actions) && changed.plan.predicted_step_s <= wanted_s) {
        found_.all.push_back(std::move(changed));
      }
    }
    return {};
  }

  // Two chunks of one rank run well only with list scheduling, as in tie_ends_of_the_best.
  void share_the_best() {
    if (!setting_.space.replicas || setting_.options.stages != 0) return;
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    std::set<std::pair<std::size_t, int>> seen;
    std::vector<PlanTrial> found;
    std::int64_t actions = 0;
    for (const PlanTrial& trial : found_.all) {
      if (seen.size() == kShareStarts || !may_continue() || is_far(trial)) break;
      if (!trial.shape.splits_backward() || trial.candidate.stages.size() < 2) continue;
      if (!seen.emplace(trial.candidate.stages.size(), trial.shape.micro_batch).second) continue;
      // Only with an inexpensive codec does sharing save more than the all-reduce costs.
      for (const CostModel* cost : setting_.with_each_codec) {
        PlanTrial shared = trial;
        if (changes_.split_layers_further(*cost, shared, actions))
          found.push_back(std::move(shared));
      }
    }
    std::move(found.begin(), found.end(), std::back_inserter(found_.all));
  }

  // A machine with little memory, or a model with few layers, may have no place in the pipelines of
  // the searches, and may still hold one layer.
  void use_idle_with_the_best() {
    if (setting_.options.stages != 0 || !may_split()) return;
    std::ranges::stable_sort(found_.all, is_better);
    const auto best = std::ranges::find_if(found_.all, [](const PlanTrial& trial) {
      return trial.shape.schedule != ScheduleKind::kGpipe;
    });
    if (best == found_.all.end() || is_far(*best) || !may_continue()) return;
    std::vector<PlanTrial> found;
    std::int64_t actions = 0;
    for (const CostModel* cost : setting_.with_each_codec) {
      PlanTrial changed = *best;
      changed.shape.schedule = ScheduleKind::kSplit;
      if (changes_.use_idle(*cost, changed, actions)) found.push_back(std::move(changed));
    }
    std::ranges::move(found, std::back_inserter(found_.all));
  }

  // The searches use the codec with the smallest messages. Its cost at both ends may exceed the
  // saving, and without all-reduces it is not needed.
  void choose_gradient_codecs() {
    if (setting_.with_each_codec.size() < 2) return;
    for (std::size_t i = 0; i < std::min(found_.all.size(), kCodecTrials); ++i) {
      take_best_codec(found_.all[i]);
    }
    if (found_.single) take_best_codec(*found_.single);
    if (found_.data_parallel) take_best_codec(*found_.data_parallel);
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
  }

  void take_best_codec(PlanTrial& trial) const {
    std::optional<PlanTrial> best;
    for (const CostModel* cost : setting_.with_each_codec) {
      auto other =
          try_candidate(setting_.model, *cost, setting_.space, trial.shape, trial.candidate);
      if (!other.ok()) continue;
      if (!best || is_better(*other, *best)) best = *std::move(other);
    }
    if (best) trial = *std::move(best);
  }

  // nullopt if memory is short.
  Result<std::optional<PlanTrial>> try_if_it_fits(const ShapedCandidate& candidate) const {
    auto trial = changes_.try_one(setting_.cost, candidate);
    if (trial.ok()) return std::optional(*std::move(trial));
    if (trial.error().code == ErrorCode::kInfeasible) return std::optional<PlanTrial>();
    return trial.error();
  }

  const TrialSetting setting_;
  const Candidates& candidates_;
  const double wanted_s_;
  TrialChanges changes_;
  Trials found_;
};

}  // namespace

Result<Trials> simulate_candidates(const TrialSetting& setting,
                                   const Candidates& candidates,
                                   double wanted_s) {
  return TrialSearch(setting, candidates, wanted_s).run();
}

}  // namespace motley
