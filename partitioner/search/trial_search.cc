#include "partitioner/search/trial_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "partitioner/cost/obey_pins.h"
#include "partitioner/cost/share.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/fold.h"
#include "partitioner/search/polish.h"

namespace motley {
namespace {

// The best estimates are simulated as long as their actions stay below the budget.
constexpr std::int64_t kSimulatedActionsMax = 300'000;
// Changes to the best of them are simulated within a second budget.
constexpr std::int64_t kRefinedActionsMax = 1'000'000;
constexpr long kRefinedWorkMax = 100'000;
constexpr std::int64_t kActionsPerStageAndMicroBatch = 7;
constexpr std::size_t kSplitTrials = 8;
// Of a step as long as another, by rounding (is_better).
constexpr double kSameStep = 1 + 1e-8;
// So many of the best are tried with each codec of gradients.
constexpr std::size_t kCodecTrials = 8;
// The best of so many pairs of number of stages and size of micro-batches are folded, with so many
// times the window of 1F1B in flight.
constexpr std::size_t kFoldStarts = 12;
// With more in flight than the estimates of its start know of, a fold is shorter by less than this.
constexpr double kFoldError = 1.25;
constexpr std::array kFoldWarmUps = {1, 3, 6};
// So many of the best trials share layers, within a budget of their own, where that makes the step
// shorter by this much: half of that gain was measured, and a shared layer costs memory twice and
// the bits that one machine would have.
constexpr std::size_t kShareStarts = 6;
constexpr std::int64_t kSharedActionsMax = 1'000'000;
constexpr double kSharingGain = 0.02;
// So many plans that do not obey the pins are changed until they do, each within a budget.
constexpr std::size_t kObeyStarts = 4;
constexpr std::int64_t kObeyedActionsMax = 1'000'000;

class TrialSearch {
 public:
  TrialSearch(const ModelSpec& model,
              const CostModel& cost,
              const std::vector<CostModel>& with_each_codec,
              const SearchSpace& space,
              const PlanOptions& options,
              const Candidates& candidates,
              double ceiling_s)
      : model_(model),
        cost_(cost),
        with_each_codec_(with_each_codec),
        space_(space),
        options_(options),
        candidates_(candidates),
        ceiling_s_(ceiling_s) {}

  Result<Trials> run() {
    std::int64_t actions = 0;
    for (const ShapedCandidate& candidate : candidates_.all) {
      if (!found_.all.empty() && actions > kSimulatedActionsMax) break;
      if (candidate.candidate.estimate_s > ceiling_s_ || !goes_on()) break;
      actions += actions_of(candidate.shape, candidate.candidate);
      MOTLEY_ASSIGN(std::optional<PlanTrial> trial, try_if_it_fits(candidate));
      if (trial) found_.all.push_back(*std::move(trial));
    }
    // Only with split backward, whose memory the estimates do not know of.
    if (found_.all.empty() && !candidates_.all.empty() && std::isinf(ceiling_s_)) {
      return try_one(candidates_.all.front()).error();
    }
    if (options_.schedule == "auto" && cost_.check_split().ok()) split_the_best();
    if (options_.cuts.empty()) {
      refine();
      fold_the_best();
      MOTLEY_TRY(obey_with_the_best());
      share_the_best();
    }
    const bool free = options_.cuts.empty() && options_.stages <= 1;
    if (candidates_.single) {
      MOTLEY_ASSIGN(found_.single, try_if_it_fits(*candidates_.single));
      if (free && found_.single) found_.all.push_back(*found_.single);
    }
    if (candidates_.data_parallel) {
      MOTLEY_ASSIGN(found_.data_parallel, try_if_it_fits(*candidates_.data_parallel));
      if (free && found_.data_parallel) found_.all.push_back(*found_.data_parallel);
    }
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    choose_gradient_codecs();
    return std::move(found_);
  }

 private:
  // Which devices and cuts are best depends little on whether backward is split, so that is tried
  // on the best of 1F1B; refining goes on from there.
  void split_the_best() {
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    std::vector<PlanTrial> found;
    for (const PlanTrial& trial : found_.all) {
      if (found.size() == kSplitTrials) break;
      if (trial.shape.gpipe || trial.candidate.stages.size() < 2) continue;
      StepShape shape = trial.shape;
      shape.split = true;
      auto split = try_one({shape, trial.candidate});
      if (split.ok()) found.push_back(*std::move(split));
    }
    std::move(found.begin(), found.end(), std::back_inserter(found_.all));
  }

  // A search that is ended early has a trial, where there is one.
  bool goes_on() const {
    if (found_.all.empty()) return true;
    const PlanTrial& best = *std::ranges::min_element(found_.all, is_better);
    return options_.goes_on(best.plan.predicted_step_s);
  }

  double found_best_s() const {
    if (found_.all.empty()) return ceiling_s_;
    const PlanTrial& best = *std::ranges::min_element(found_.all, is_better);
    return std::min(ceiling_s_, best.plan.predicted_step_s);
  }

  // With the head beside the embedding their tied parameter needs no sum over a link, for one
  // boundary more: less on slow links. Only list scheduling runs two chunks of one rank well. The
  // searches know no such stages, so it is tried on what they find where nothing is tied.
  void fold_the_best() {
    const bool may_split = options_.schedule == "auto" || options_.schedule == "split";
    if (!may_split || !cost_.check_split().ok()) return;
    if (cost_.sizes().tied_parameters() == 0 || options_.stages != 0) return;
    // A fold adds a boundary to what it starts from, and both its ends are on one slot.
    SearchSpace pipelines = space_;
    pipelines.replicas = false;
    const double ceiling_s = kFoldError * found_best_s();
    const std::vector<ShapedCandidate> starts =
        candidates_.untied.empty()
            ? collect_candidates(cost_.without_tied(), pipelines, options_, ceiling_s).all
            : candidates_.untied;
    std::set<std::pair<std::size_t, int>> seen;
    std::vector<PlanTrial> found;
    std::int64_t actions = 0;
    for (const ShapedCandidate& unfolded : starts) {
      if (seen.size() == kFoldStarts || !goes_on() || unfolded.candidate.estimate_s > ceiling_s)
        break;
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
          if (!start.ok() || !obeys_pins(*start)) continue;
          refine(*start, actions);
          found.push_back(*std::move(start));
        }
      }
    }
    std::move(found.begin(), found.end(), std::back_inserter(found_.all));
  }

  // The estimate leaves out how hops and stages meet in time, so a neighbour of a good trial may be
  // simulated shorter: of the best of each shape first, then of the others.
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
      if (actions >= kRefinedActionsMax || !goes_on()) break;
      refine(best, actions);
      found_.all.push_back(std::move(best));
    }
  }

  // A change of `best` that makes its step shorter than limit_s, tried; nothing where it does not.
  // What was tried before and was longer is not tried again: descents meet often.
  std::optional<PlanTrial> try_change(const CostModel& cost,
                                      const StepShape& shape,
                                      const Candidate& changed,
                                      double limit_s,
                                      std::int64_t& actions) {
    const auto [known, added] = tried_.try_emplace(key_of(cost, shape, changed), 0);
    if (!added && known->second > limit_s) return std::nullopt;
    actions += actions_of(shape, changed);
    auto trial = try_one(cost, {shape, changed});
    known->second =
        trial.ok() ? trial->plan.predicted_step_s : std::numeric_limits<double>::infinity();
    if (!trial.ok()) return std::nullopt;
    return *std::move(trial);
  }

  using Key = std::vector<int>;

  Key key_of(const CostModel& cost, const StepShape& shape, const Candidate& candidate) const {
    const auto codec =
        std::ranges::find(with_each_codec_, cost.gradient_codec(), &CostModel::gradient_codec);
    Key key = {static_cast<int>(codec - with_each_codec_.begin()), shape.micro_batch, shape.gpipe,
               shape.warm_up, shape.split};
    for (const StageChoice& stage : candidate.stages) {
      key.insert(key.end(), {-1, stage.first_layer, stage.recompute, stage.codec});
      key.insert(key.end(), stage.slots.begin(), stage.slots.end());
      key.insert(key.end(), stage.shares.begin(), stage.shares.end());
    }
    return key;
  }

  // Each may make room for the other.
  void refine(PlanTrial& best, std::int64_t& actions) {
    do {
      refine_stages(best, actions);
    } while (take_best_order(best, actions));
  }

  void refine_stages(PlanTrial& best, std::int64_t& actions) {
    const StageTable table(cost_, best.shape);
    const StepEstimate estimate(table, space_);
    std::vector<int> slots(cost_.slots().size());
    std::iota(slots.begin(), slots.end(), 0);
    const auto takes = [&](Candidate& changed) {
      if (actions >= kRefinedActionsMax || !estimate.rate(changed)) return false;
      if (estimate.busiest_s(changed) >= best.plan.predicted_step_s) return false;
      const double limit_s = kSameStep * best.plan.predicted_step_s;
      auto trial = try_change(cost_, best.shape, changed, limit_s, actions);
      if (!trial || !is_better(*trial, best)) return false;
      best = *std::move(trial);
      return true;
    };
    Candidate candidate = best.candidate;
    descend(estimate, slots, kRefinedWorkMax, takes, candidate);
  }

  // The same stages with their passes in another order; whether one is better.
  bool take_best_order(PlanTrial& best, std::int64_t& actions) {
    const PlanTrial before = best;
    for (StepShape shape : step_shapes(options_)) {
      shape.split = before.shape.split && !shape.gpipe;
      if (shape.micro_batch != before.shape.micro_batch || shape == before.shape) continue;
      if (actions >= kRefinedActionsMax) break;
      const double limit_s = kSameStep * best.plan.predicted_step_s;
      auto trial = try_change(cost_, shape, before.candidate, limit_s, actions);
      if (trial && is_better(*trial, best)) best = *std::move(trial);
    }
    return best.shape != before.shape;
  }

  bool obeys_pins(const PlanTrial& trial) const {
    const StageTable table(cost_, trial.shape);
    return StepEstimate(table, space_).obeys_pins(trial.candidate);
  }

  // The best plans without pins, changed as little as it takes to obey them.
  Result<void> obey_with_the_best() {
    if (space_.must_use.empty() && space_.may_hold.empty()) return {};
    if (options_.stages != 0 || !cost_.check_split().ok()) return {};
    SearchSpace free = space_;
    free.must_use.clear();
    free.may_hold.clear();
    const Candidates candidates = collect_candidates(cost_, free, options_, ceiling_s_);
    if (candidates.all.empty()) return {};
    TrialSearch search(model_, cost_, with_each_codec_, free, options_, candidates, ceiling_s_);
    MOTLEY_ASSIGN(const Trials trials, search.run());
    std::set<std::pair<std::size_t, int>> seen;
    for (const PlanTrial& trial : trials.all) {
      if (seen.size() == kObeyStarts || !goes_on()) break;
      if (trial.shape.gpipe ||
          !seen.emplace(trial.candidate.stages.size(), trial.shape.micro_batch).second) {
        continue;
      }
      std::int64_t actions = 0;
      PlanTrial changed = trial;
      // It most often shares a layer, which has its price.
      const double wanted_s = (1 - kSharingGain) * found_best_s();
      if (obey(changed, actions) && changed.plan.predicted_step_s <= wanted_s) {
        found_.all.push_back(std::move(changed));
      }
    }
    return {};
  }

  // Pin after pin by the change that makes the step shortest; whether all are obeyed.
  bool obey(PlanTrial& best, std::int64_t& actions) {
    StepShape shape = best.shape;
    shape.split = options_.schedule == "auto" || options_.schedule == "split";
    const StageTable table(cost_, shape);
    const StepEstimate estimate(table, space_);
    while (!estimate.obeys_pins(best.candidate)) {
      std::vector<Candidate> changes;
      for (Candidate& change : changes_to_obey(best.candidate, space_, cost_.layer_count())) {
        if (estimate.rate_dealt(change)) changes.push_back(std::move(change));
      }
      std::ranges::stable_sort(changes, {}, &Candidate::estimate_s);
      std::optional<PlanTrial> found;
      for (const Candidate& change : changes) {
        if (found && actions >= kObeyedActionsMax) break;
        const double limit_s =
            found ? found->plan.predicted_step_s : std::numeric_limits<double>::infinity();
        if (estimate.busiest_s(change) >= limit_s) continue;
        for (const CostModel& cost : with_each_codec_) {
          auto trial = try_change(cost, shape, change, limit_s, actions);
          if (trial && (!found || is_better(*trial, *found))) found = std::move(trial);
        }
      }
      if (!found) return false;
      best = *std::move(found);
    }
    return true;
  }

  // Two chunks of one rank run well only by list scheduling, as in fold_the_best.
  void share_the_best() {
    if (!space_.replicas || options_.stages != 0) return;
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
    std::set<std::pair<std::size_t, int>> seen;
    std::vector<PlanTrial> found;
    std::int64_t actions = 0;
    for (const PlanTrial& trial : found_.all) {
      if (seen.size() == kShareStarts || !goes_on()) break;
      if (!trial.shape.split || trial.candidate.stages.size() < 2) continue;
      if (!seen.emplace(trial.candidate.stages.size(), trial.shape.micro_batch).second) continue;
      // Only with a codec that costs little is a sum worth what sharing saves.
      for (const CostModel& cost : with_each_codec_) {
        PlanTrial shared = trial;
        if (share(cost, shared, actions)) found.push_back(std::move(shared));
      }
    }
    std::move(found.begin(), found.end(), std::back_inserter(found_.all));
  }

  // One layer more as long as that pays, then by single micro-batches; whether anything did.
  bool share(const CostModel& cost, PlanTrial& best, std::int64_t& actions) {
    bool better = true;
    int layers = 0;
    for (; better; layers += better ? 1 : 0) {
      std::vector<Candidate> changes;
      for (int taken = 1; taken < best.shape.micro_batches; taken += (taken + 1) / 2) {
        std::ranges::move(shared_layers(best.candidate, cost_.layer_count(), taken),
                          std::back_inserter(changes));
      }
      better = take_best(cost, changes, kSharingGain, actions, best);
    }
    if (layers == 0) return false;
    while (take_best(cost, shifted_shares(best.candidate), 0, actions, best)) {
    }
    return true;
  }

  // Goes on from the best of the changes where it makes the step shorter by that share.
  bool take_best(const CostModel& cost,
                 const std::vector<Candidate>& changes,
                 double gain,
                 std::int64_t& actions,
                 PlanTrial& best) {
    const StageTable table(cost, best.shape);
    const StepEstimate estimate(table, space_);
    const double least_s = (1 - gain) * best.plan.predicted_step_s;
    std::optional<PlanTrial> found;
    for (const Candidate& change : changes) {
      Candidate changed = change;
      if (actions >= kSharedActionsMax || !estimate.rate_dealt(changed)) continue;
      if (!estimate.obeys_pins(changed)) continue;
      const double limit_s = found ? found->plan.predicted_step_s : least_s;
      if (estimate.busiest_s(changed) >= limit_s) continue;
      auto trial = try_change(cost, best.shape, changed, kSameStep * limit_s, actions);
      if (trial && is_better(*trial, found ? *found : best)) found = *std::move(trial);
    }
    if (!found || found->plan.predicted_step_s > least_s) return false;
    best = *std::move(found);
    return true;
  }

  // The searches have taken the codec whose messages are smallest; what it costs at both ends may
  // be more than that saves, and where nothing is summed there is no need of it.
  void choose_gradient_codecs() {
    if (with_each_codec_.size() < 2) return;
    for (std::size_t i = 0; i < std::min(found_.all.size(), kCodecTrials); ++i) {
      take_best_codec(found_.all[i]);
    }
    if (found_.single) take_best_codec(*found_.single);
    if (found_.data_parallel) take_best_codec(*found_.data_parallel);
    std::stable_sort(found_.all.begin(), found_.all.end(), is_better);
  }

  void take_best_codec(PlanTrial& trial) const {
    std::optional<PlanTrial> best;
    for (const CostModel& cost : with_each_codec_) {
      auto other = try_candidate(model_, cost, space_, trial.shape, trial.candidate);
      if (!other.ok()) continue;
      if (!best || is_better(*other, *best)) best = *std::move(other);
    }
    if (best) trial = *std::move(best);
  }

  static std::int64_t actions_of(const StepShape& shape, const Candidate& candidate) {
    return kActionsPerStageAndMicroBatch * shape.micro_batches *
           static_cast<std::int64_t>(candidate.stages.size());
  }

  Result<PlanTrial> try_one(ShapedCandidate candidate) const {
    return try_one(cost_, std::move(candidate));
  }

  Result<PlanTrial> try_one(const CostModel& cost, ShapedCandidate candidate) const {
    if (options_.schedule == "split") candidate.shape.split = true;
    return try_candidate(model_, cost, space_, candidate.shape, std::move(candidate.candidate));
  }

  // Nothing where memory is short.
  Result<std::optional<PlanTrial>> try_if_it_fits(const ShapedCandidate& candidate) const {
    auto trial = try_one(candidate);
    if (trial.ok()) return std::optional(*std::move(trial));
    if (trial.error().code == ErrorCode::kInfeasible) return std::optional<PlanTrial>();
    return trial.error();
  }

  const ModelSpec& model_;
  const CostModel& cost_;
  const std::vector<CostModel>& with_each_codec_;
  const SearchSpace& space_;
  const PlanOptions& options_;
  const Candidates& candidates_;
  const double ceiling_s_;
  std::map<Key, double> tried_;  // changes: step, infinite where it does not fit
  Trials found_;
};

}  // namespace

Result<Trials> simulate_candidates(const ModelSpec& model,
                                   const CostModel& cost,
                                   const std::vector<CostModel>& with_each_codec,
                                   const SearchSpace& space,
                                   const PlanOptions& options,
                                   const Candidates& candidates,
                                   double ceiling_s) {
  return TrialSearch(model, cost, with_each_codec, space, options, candidates, ceiling_s).run();
}

}  // namespace motley
