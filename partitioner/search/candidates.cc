#include "partitioner/search/candidates.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "partitioner/cost/step_estimate.h"
#include "partitioner/cost/throughput_bound.h"
#include "partitioner/period_search/exact_search.h"
#include "partitioner/period_search/period_search.h"
#include "partitioner/period_search/shape_tables.h"
#include "partitioner/period_search/whole_model_placements.h"

namespace motley {
namespace {

// The estimate ranks candidates well but not exactly, so the best few of each shape are simulated.
constexpr std::size_t kKeptPerShape = 16;
// A search over many slots takes up to seconds, so it covers only the micro-batch sizes with the
// best bounds on the step.
constexpr std::size_t kLargeSizes = 3;
// With at most this many slots, the pipelines of a model without its tied parameter are searched
// separately. With more this takes too long, and the candidates of the search with it are rated.
constexpr std::size_t kOwnUntiedMax = 12;
// Simulated steps of candidates whose estimates exceed the best by more than this factor are not
// the shortest. With few micro-batches filling and draining dominate, where the estimate is least
// accurate.
constexpr double kSpread = 1.2;
constexpr double kSpreadOfFew = 1.5;
constexpr int kFewMicroBatches = 8;
// At most this many numbers of devices are simulated with data parallelism. The estimate is least
// accurate for all-reduces.
constexpr std::size_t kDataParallelMax = 8;
// The approximate cost of a tail in a search (SearchObserver::count_work).
constexpr std::int64_t kActionsOfATail = 1;

// The schedules with candidates of their own of which parallel.schedule needs some, the simplest
// first.
std::vector<ScheduleKind> searched_schedules(const std::string& choice) {
  std::vector<ScheduleKind> found;
  for (const ScheduleFacts& each : kSchedules) {
    const bool is_found = std::ranges::find(found, each.searched_as) != found.end();
    if (permits_schedule(choice, each.kind) && !is_found) found.push_back(each.searched_as);
  }
  std::ranges::sort(found, {}, [](ScheduleKind kind) { return schedule_facts(kind).complexity; });
  return found;
}

class Collector {
 public:
  Collector(const CostModel& cost,
            const SearchSpace& space,
            const PlanOptions& options,
            double ceiling_s)
      : cost_(cost), space_(space), options_(options), ceiling_s_(ceiling_s), tables_(cost, space) {
    for (int slot = 0; slot < static_cast<int>(cost.slots().size()); ++slot) {
      if (space.usable.empty() || space.usable[static_cast<std::size_t>(slot)]) {
        usable_.push_back(slot);
      }
    }
  }

  Candidates collect() {
    const std::vector<StepShape> shapes = step_shapes(options_);
    for (const StepShape& shape : shapes) whole_.add(tables_.of(shape), space_, usable_);
    if (!options_.cuts.empty()) {
      for (const StepShape& shape : shapes) add_given(shape);
    } else if (usable_.size() <= kExactSlotsMax && cost_.layer_count() <= kExactLayersMax) {
      for (const auto& of_one_size : tables_.promising(shapes, shapes.size(), ceiling_s_)) {
        for (const StepShape& shape : of_one_size) {
          if (may_continue()) search_small(shape);
        }
      }
    } else {
      for (const auto& of_one_size : tables_.promising(shapes, kLargeSizes, ceiling_s_)) {
        if (may_continue()) search_large(of_one_size);
        for (const StepShape& shape : of_one_size) {
          if (may_continue()) search_fastest(shape);
        }
      }
      add_whole();
    }
    sort(found_.all);
    sort(found_.untied);
    found_.single = whole_.single();
    found_.data_parallel = whole_.data_parallel();
    sort(found_.data_parallel);
    if (found_.data_parallel.size() > kDataParallelMax) {
      found_.data_parallel.resize(kDataParallelMax);
    }
    return std::move(found_);
  }

 private:
  // A stopped search still returns a candidate, if there is one.
  [[nodiscard]] bool may_continue() const {
    return found_.all.empty() || options_.may_continue(std::numeric_limits<double>::infinity());
  }

  static void sort(std::vector<ShapedCandidate>& candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      const double a_s = a.candidate.estimate_s;
      const double b_s = b.candidate.estimate_s;
      return a_s != b_s ? a_s < b_s : is_simpler(a.candidate, b.candidate);
    });
  }

  static double spread(const StepShape& shape) {
    return shape.micro_batches > kFewMicroBatches ? kSpread : kSpreadOfFew;
  }

  void search_small(const StepShape& shape) {
    const StageTable table = tables_.of(shape);
    const double ceiling_s = std::min(ceiling_s_, spread(shape) * shortest_s_);
    std::int64_t tails = 0;
    std::vector<Candidate> candidates = search_exactly(table, space_,
                                                       {.keep = kKeptPerShape,
                                                        .ceiling_s = ceiling_s,
                                                        .spread = spread(shape),
                                                        .known = known(table),
                                                        .tails = &tails});
    options_.count_work(tails * kActionsOfATail);
    const double fluid_s = ThroughputBound(table, space_).fluid_period_s();
    ShapeBounds bounds{shape, "exact", fluid_s};
    bounds.step_bound_s = candidates.empty() ? ceiling_s : candidates.front().estimate_s;
    found_.bounds.push_back(bounds);
    add(shape, std::move(candidates));
  }

  // The shapes of one micro-batch size share a search: with 1F1B, if it is allowed, since it needs
  // no more memory than GPipe.
  void search_large(const std::vector<StepShape>& shapes) {
    const StageTable table = tables_.of(shapes.front());
    const auto untied_table = untied_table_of(shapes.front());
    const PeriodSearchResult result =
        search_period(table, space_, kKeptPerShape, untied_table ? &*untied_table : nullptr);
    options_.count_work(result.tails * kActionsOfATail);
    const ThroughputBound throughput_bound(table, space_);
    for (const StepShape& shape : shapes) {
      found_.bounds.push_back(
          {shape, result.is_complete ? "all sets" : "beam", result.bounds.fluid_s,
           result.bounds.granularity_s, result.bounds.proven_s, result.period_s,
           throughput_bound.step_bound_s(result.bounds.proven_s, shape.micro_batches)});
      if (untied_table) add_untied(shape, result.untied);
      const StageTable own_table = tables_.of(shape);
      const StepEstimate estimate(own_table, space_);
      for (Candidate candidate : result.candidates) {
        if (!estimate.rate(candidate) || candidate.estimate_s > ceiling_s_) continue;
        shortest_s_ = std::min(shortest_s_, candidate.estimate_s);
        found_.all.push_back({shape, std::move(candidate)});
      }
    }
  }

  // For a few much faster slots the exact search also finds stages of several replicas.
  void search_fastest(const StepShape& shape) {
    if (cost_.layer_count() > kExactLayersMax) return;
    const StageTable table = tables_.of(shape);
    const SearchSpace fastest = space_of_fastest(table);
    const double ceiling_s = std::min(ceiling_s_, spread(shape) * shortest_s_);
    if (ThroughputBound(table, fastest).step_bound_s(0, shape.micro_batches) > ceiling_s) return;
    std::int64_t tails = 0;
    std::vector<Candidate> candidates = search_exactly(
        table, fastest,
        {.keep = kKeptPerShape, .ceiling_s = ceiling_s, .spread = spread(shape), .tails = &tails});
    options_.count_work(tails * kActionsOfATail);
    for (Candidate& candidate : candidates) found_.all.push_back({shape, std::move(candidate)});
  }

  // The number for which the search is cheap relative to that of all slots.
  std::size_t fastest_slots() const {
    constexpr int kFewLayers = 10;
    constexpr std::size_t kSlotsOfMany = 4;
    return cost_.layer_count() <= kFewLayers ? kExactSlotsMax : kSlotsOfMany;
  }

  // Required slots first, then the fastest.
  SearchSpace space_of_fastest(const StageTable& table) const {
    const ThroughputBound throughput_bound(table, space_);
    const auto is_wanted = [&](int slot) {
      return std::ranges::any_of(space_.must_use, [&](const std::vector<int>& wanted) {
        return std::ranges::find(wanted, slot) != wanted.end();
      });
    };
    std::vector<int> order = usable_;
    std::ranges::stable_sort(order, {}, [&](int slot) {
      return std::pair(!is_wanted(slot), -throughput_bound.of(slot));
    });
    SearchSpace few = space_;
    few.usable.assign(cost_.slots().size(), false);
    for (std::size_t i = 0; i < std::min(fastest_slots(), order.size()); ++i) {
      few.usable[static_cast<std::size_t>(order[i])] = true;
    }
    return few;
  }

  // Searches over many slots do not consider replicas; data parallelism over the fastest devices
  // represents them. Candidates may leave out a required slot if that slot alone uses it.
  void add_whole() {
    if (space_.stages > 1) return;
    for (const auto& whole : whole_.best()) {
      if (whole.candidate.estimate_s <= ceiling_s_) found_.all.push_back(whole);
    }
  }

  void add_untied(const StepShape& shape, const std::vector<Candidate>& candidates) {
    const auto table = untied_table_of(shape);
    const StepEstimate estimate(*table, space_);
    for (Candidate candidate : candidates) {
      if (estimate.rate(candidate)) found_.untied.push_back({shape, std::move(candidate)});
    }
  }

  // nullopt if nothing is tied, or if a separate search is cheap.
  std::optional<StageTable> untied_table_of(const StepShape& shape) {
    if (cost_.sizes().tied_parameters() == 0 || usable_.size() <= kOwnUntiedMax) {
      return std::nullopt;
    }
    return tables_.untied(shape);
  }

  void add_given(const StepShape& shape) {
    const StageTable table = tables_.of(shape);
    const StepEstimate estimate(table, space_);
    Candidate given = given_stages(options_);
    if (!estimate.rate(given)) return;
    found_.bounds.push_back({shape, "given"});
    add(shape, {std::move(given)});
  }

  // Candidates found for other shapes, rated for this one.
  std::vector<Candidate> known(const StageTable& table) const {
    const StepEstimate estimate(table, space_);
    std::vector<Candidate> known;
    const auto add = [&](Candidate candidate) {
      if (space_.stages != 0 && static_cast<int>(candidate.stages.size()) != space_.stages) return;
      if (estimate.rate(candidate)) known.push_back(std::move(candidate));
    };
    for (const Candidate& other : last_found_) add(other);
    for (const auto& whole : whole_.best()) add(whole.candidate);
    return known;
  }

  void add(const StepShape& shape, std::vector<Candidate> candidates) {
    if (!candidates.empty()) {
      shortest_s_ = std::min(shortest_s_, candidates.front().estimate_s);
      last_found_ = candidates;
    }
    for (Candidate& candidate : candidates) found_.all.push_back({shape, std::move(candidate)});
  }

  const CostModel& cost_;
  const SearchSpace& space_;
  const PlanOptions& options_;
  const double ceiling_s_;
  std::vector<int> usable_;
  double shortest_s_ = std::numeric_limits<double>::infinity();  // estimate found
  WholeModelPlacements whole_;
  std::vector<Candidate> last_found_;  // for the last shape with candidates
  ShapeTables tables_;
  Candidates found_;
};

}  // namespace

std::vector<StepShape> step_shapes(const PlanOptions& options) {
  std::vector<StepShape> shapes;
  for (const int size : micro_batch_sizes(options)) {
    const int count = options.global_batch / size;
    for (const ScheduleKind kind : searched_schedules(options.schedule)) {
      for (int warm_up = 1; warm_up <= schedule_facts(kind).warm_up_max; ++warm_up) {
        // With this many micro-batches or fewer, a longer warm-up changes nothing.
        if (warm_up == 1 || count > warm_up) shapes.push_back({size, count, kind, warm_up});
      }
    }
  }
  return shapes;
}

Candidate given_stages(const PlanOptions& options) {
  Candidate candidate;
  candidate.stages.push_back({{0}, {}, 0, false, 0});
  for (const std::int64_t cut : options.cuts) {
    const int slot = static_cast<int>(candidate.stages.size());
    candidate.stages.push_back({{slot}, {}, static_cast<int>(cut), false, 0});
  }
  return candidate;
}

Candidates collect_candidates(const CostModel& cost,
                              const SearchSpace& space,
                              const PlanOptions& options,
                              double ceiling_s) {
  return Collector(cost, space, options, ceiling_s).collect();
}

}  // namespace motley
