#include "partitioner/period_search/period_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "partitioner/cost/stage_reach.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/cost/throughput_bound.h"
#include "partitioner/period_search/add_stages.h"
#include "partitioner/period_search/best_candidates.h"
#include "partitioner/period_search/local_search.h"
#include "partitioner/period_search/period_probe.h"
#include "partitioner/period_search/slot_classes.h"

namespace motley {
namespace {

// Periods that differ by less are equal: if the bisection is a proof, and if it is not.
constexpr double kSamePeriod = 1e-7;
constexpr double kNearPeriod = 3e-4;
constexpr int kProbesMax = 64;
// With few micro-batches a step may be shorter with a longer period and fewer stages, so candidates
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
        throughput_bound_(table, space),
        classes_(slot_classes(table.cost(), space)),
        reach_(estimate_, throughput_bound_, classes_),
        probe_(can_probe_all_sets(classes_)
                   ? all_sets_probe(classes_, throughput_bound_, table.layer_count())
                   : beam_probe(classes_, throughput_bound_, table.layer_count())),
        best_(keep),
        untied_best_(keep),
        count_max_(keep) {
    if (untied != nullptr) untied_estimate_.emplace(*untied, space);
    if (space.stages != 0) {
      fewer_space_ = space;
      fewer_space_.must_use.clear();
      fewer_estimate_.emplace(table, fewer_space_);
    }
  }

  PeriodSearchResult run() {
    find_bounds();
    const std::optional<double> least_s = bisect();
    if (!least_s) return {{}, {}, bounds_, 0, probe_->is_complete(), probe_->tails()};
    fewer_.clear();
    for (const double factor : kLonger) probe(*least_s * factor);
    for (Candidate& fewer : fewer_) offer_with_more_stages(std::move(fewer));
    BestCandidates polished(count_max_);
    for (Candidate candidate : best_.list()) {
      local_search(estimate_, candidate);
      shortest_s_ = std::min(shortest_s_, candidate.period_s);
      polished.offer(std::move(candidate));
    }
    BestCandidates untied(count_max_);
    for (Candidate candidate : untied_best_.list()) {
      local_search(*untied_estimate_, candidate);
      untied.offer(std::move(candidate));
    }
    return {polished.list(), untied.list(),         bounds_,
            shortest_s_,     probe_->is_complete(), probe_->tails()};
  }

 private:
  void find_bounds() {
    bounds_.fluid_s = throughput_bound_.fluid_period_s();
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
    bool any = false;  // the probe returned pipelines
    // The shortest period, by the probe's own criteria, of a pipeline that fits.
    double least_s = std::numeric_limits<double>::infinity();
  };

  // Rates the pipelines within the period and stores good ones. Their actual periods may differ:
  // links and round trips may lengthen them, and the stages rarely fill it.
  Outcome probe(double period_s) {
    reach_.set_period(period_s);
    Outcome outcome;
    std::optional<Candidate> fewer;
    for (const Pipeline& pipeline : probe_->pipelines(reach_)) {
      outcome.any = true;
      Candidate candidate;
      for (std::size_t i = 0; i < pipeline.slots.size(); ++i) {
        candidate.stages.push_back({{pipeline.slots[i]}, {}, pipeline.first_layers[i], false, 0});
      }
      const int stages = static_cast<int>(candidate.stages.size());
      if (space_.stages != 0 && stages != space_.stages) {
        // Stages are added later, at the least period.
        if (stages > space_.stages || !choose_codecs(*fewer_estimate_, candidate)) continue;
        outcome.least_s = std::min(outcome.least_s, needed_s(pipeline));
        if (!fewer || fewer->stages.size() < candidate.stages.size()) fewer = std::move(candidate);
        continue;
      }
      if (untied_estimate_) {
        Candidate untied = candidate;
        if (choose_codecs(*untied_estimate_, untied)) untied_best_.offer(std::move(untied));
      }
      if (!choose_codecs(estimate_, candidate)) continue;
      outcome.least_s = std::min(outcome.least_s, needed_s(pipeline));
      shortest_s_ = std::min(shortest_s_, candidate.period_s);
      best_.offer(std::move(candidate));
    }
    if (fewer) fewer_.push_back(*std::move(fewer));
    return outcome;
  }

  double needed_s(const Pipeline& pipeline) const {
    return reach_.least_period_s(pipeline.slots, pipeline.first_layers);
  }

  void offer_with_more_stages(Candidate candidate) {
    if (!add_stages(*fewer_estimate_, slots_to_add(), space_.stages, candidate)) return;
    if (choose_codecs(estimate_, candidate)) best_.offer(std::move(candidate));
  }

  // Required slots first, then the fastest.
  std::vector<int> slots_to_add() const {
    std::vector<int> slots;
    for (const std::vector<int>& members : classes_) {
      slots.insert(slots.end(), members.begin(), members.end());
    }
    std::ranges::sort(slots, {}, [&](int slot) {
      const auto holds = [&](const std::vector<int>& wanted) {
        return std::ranges::find(wanted, slot) != wanted.end();
      };
      return std::tuple(std::ranges::none_of(space_.must_use, holds), -throughput_bound_.of(slot),
                        slot);
    });
    return slots;
  }

  // The least period with a pipeline that fits. nullopt if there is none at any period, because of
  // memory or pins.
  std::optional<double> bisect() {
    double low_s = bounds_.granularity_s;
    std::optional<double> high_s;
    double period_s = low_s;
    for (int i = 0; i < kProbesMax && !high_s; ++i) {
      // Small steps first: the answer is usually near.
      if (i > 0) period_s *= i < 8 ? 1 + 0.02 * i : 2;
      high_s = try_period(period_s);
      if (!high_s) low_s = period_s;
    }
    if (!high_s) return std::nullopt;
    // Few periods are possible, so the one that was found may well be the least. One probe just
    // below it can prove that. A beam is better probed at many periods.
    const double same = probe_->is_complete() ? kSamePeriod : kNearPeriod;
    bool just_below = probe_->is_complete();
    for (int i = 0; i < kProbesMax; ++i) {
      const double least_s = *high_s;
      if (least_s <= low_s * (1 + same)) break;
      period_s = just_below ? least_s * (1 - same / 2) : (low_s + least_s) / 2;
      if (const auto found = try_period(period_s)) {
        high_s = found;
        just_below = probe_->is_complete() && !just_below;
      } else {
        low_s = period_s;
        just_below = false;
      }
    }
    return high_s;
  }

  // The period of the pipelines found; nullopt if none was found.
  std::optional<double> try_period(double period_s) {
    const Outcome outcome = probe(period_s);
    if (!outcome.any && probe_->is_complete()) {
      bounds_.proven_s = std::max(bounds_.proven_s, period_s);
    }
    if (outcome.least_s == std::numeric_limits<double>::infinity()) return std::nullopt;
    return probe_->is_complete() ? std::min(period_s, outcome.least_s) : period_s;
  }

  const SearchSpace& space_;
  StepEstimate estimate_;
  ThroughputBound throughput_bound_;
  std::vector<std::vector<int>> classes_;
  StageReach reach_;
  std::unique_ptr<PeriodProbe> probe_;
  std::optional<StepEstimate> untied_estimate_;
  // For a requested number of stages: of pipelines with fewer, the longest of each probe. It may
  // not use required slots.
  SearchSpace fewer_space_;
  std::optional<StepEstimate> fewer_estimate_;
  std::vector<Candidate> fewer_;
  BestCandidates best_;
  BestCandidates untied_best_;
  PeriodBounds bounds_;
  std::size_t count_max_;
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
