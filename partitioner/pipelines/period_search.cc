#include "partitioner/pipelines/period_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "partitioner/cost/pace.h"
#include "partitioner/cost/stage_reach.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/pipelines/best_candidates.h"
#include "partitioner/pipelines/period_probe.h"
#include "partitioner/pipelines/polish.h"
#include "partitioner/pipelines/slot_classes.h"

namespace motley {
namespace {

// Two periods closer than this are one: where the bisection is a proof, and where it is not.
constexpr double kSamePeriod = 1e-7;
constexpr double kNearPeriod = 3e-4;
constexpr int kProbesMax = 64;
// A step of few micro-batches may be shorter with a longer period and fewer stages, so candidates
// are also taken at periods longer by these factors.
constexpr std::array<double, 9> kLonger = {1.0, 1.01, 1.03, 1.07, 1.15, 1.3, 1.6, 2.2, 4.0};

class PeriodSearch {
 public:
  PeriodSearch(const StageTable& table,
               const SearchSpace& space,
               std::size_t keep,
               const StageTable* untied)
      : space_(space),
        estimate_(table, space),
        pace_(table, space),
        classes_(slot_classes(table.cost(), space)),
        reach_(estimate_, pace_, classes_),
        probe_(can_probe_all_sets(classes_) ? all_sets_probe(classes_, pace_, table.layer_count())
                                            : beam_probe(classes_, pace_, table.layer_count())),
        best_(keep),
        untied_best_(keep),
        keep_(keep) {
    if (untied != nullptr) untied_estimate_.emplace(*untied, space);
  }

  PeriodSearchResult run() {
    find_bounds();
    const std::optional<double> least_s = bisect();
    if (!least_s) return {{}, {}, bounds_, 0, probe_->is_complete()};
    for (const double factor : kLonger) probe(*least_s * factor);
    BestCandidates polished(keep_);
    for (Candidate candidate : best_.list()) {
      polish(estimate_, candidate);
      shortest_s_ = std::min(shortest_s_, candidate.period_s);
      polished.offer(std::move(candidate));
    }
    BestCandidates untied(keep_);
    for (Candidate candidate : untied_best_.list()) {
      polish(*untied_estimate_, candidate);
      untied.offer(std::move(candidate));
    }
    return {polished.list(), untied.list(), bounds_, shortest_s_, probe_->is_complete()};
  }

 private:
  void find_bounds() {
    bounds_.fluid_s = pace_.fluid_period_s();
    double low_s = bounds_.fluid_s;
    double high_s = low_s;
    const auto is_possible = [&](double period_s) {
      reach_.set_period(period_s);
      return reach_.slack() >= 0;
    };
    for (int i = 0; i < kProbesMax && !is_possible(high_s); ++i) high_s *= 1.5;
    for (int i = 0; i < kProbesMax && high_s > low_s * (1 + kSamePeriod); ++i) {
      const double middle_s = (low_s + high_s) / 2;
      (is_possible(middle_s) ? high_s : low_s) = middle_s;
    }
    bounds_.granularity_s = low_s;
    bounds_.proven_s = low_s;
  }

  struct Outcome {
    bool any = false;  // pipelines came out of the probe
    double least_s =
        std::numeric_limits<double>::infinity();  // the shortest period of those that fit
  };

  // Pipelines within the period, rated and kept if they are good. Their true periods may differ
  // from it: links and round trips may lengthen them, and the stages rarely fill it.
  Outcome probe(double period_s) {
    reach_.set_period(period_s);
    Outcome outcome;
    for (const Pipeline& pipeline : probe_->pipelines(reach_)) {
      outcome.any = true;
      Candidate candidate;
      for (std::size_t i = 0; i < pipeline.slots.size(); ++i) {
        candidate.stages.push_back({{pipeline.slots[i]}, {}, pipeline.first_layers[i], false, 0});
      }
      if (space_.stages != 0 && static_cast<int>(candidate.stages.size()) != space_.stages)
        continue;
      if (untied_estimate_) {
        Candidate untied = candidate;
        if (choose_codecs(*untied_estimate_, untied)) untied_best_.offer(std::move(untied));
      }
      if (!choose_codecs(estimate_, candidate)) continue;
      outcome.least_s = std::min(outcome.least_s, candidate.period_s);
      best_.offer(std::move(candidate));
    }
    shortest_s_ = std::min(shortest_s_, outcome.least_s);
    return outcome;
  }

  // The least period with a pipeline that fits. nullopt when no period is long enough: memory or
  // pins forbid all.
  std::optional<double> bisect() {
    double low_s = bounds_.granularity_s;
    double high_s = low_s;
    bool found = false;
    for (int i = 0; i < kProbesMax && !found; ++i) {
      // Slowly at first: the answer is most often near.
      if (i > 0) high_s *= i < 8 ? 1 + 0.02 * i : 2;
      found = try_period(high_s);
      if (!found) low_s = high_s;
    }
    if (!found) return std::nullopt;
    const double same = probe_->is_complete() ? kSamePeriod : kNearPeriod;
    for (int i = 0; i < kProbesMax && high_s > low_s * (1 + same); ++i) {
      const double middle_s = (low_s + high_s) / 2;
      (try_period(middle_s) ? high_s : low_s) = middle_s;
    }
    return high_s;
  }

  bool try_period(double period_s) {
    const Outcome outcome = probe(period_s);
    if (!outcome.any && probe_->is_complete()) {
      bounds_.proven_s = std::max(bounds_.proven_s, period_s);
    }
    return outcome.least_s < std::numeric_limits<double>::infinity();
  }

  const SearchSpace& space_;
  StepEstimate estimate_;
  Pace pace_;
  std::vector<std::vector<int>> classes_;
  StageReach reach_;
  std::unique_ptr<PeriodProbe> probe_;
  std::optional<StepEstimate> untied_estimate_;
  BestCandidates best_;
  BestCandidates untied_best_;
  PeriodBounds bounds_;
  std::size_t keep_;
  double shortest_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace

PeriodSearchResult search_period(const StageTable& table,
                                 const SearchSpace& space,
                                 std::size_t keep,
                                 const StageTable* untied) {
  return PeriodSearch(table, space, keep, untied).run();
}

}  // namespace motley
