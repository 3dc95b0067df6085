// PlanSearch: searches for a better plan on its own thread during a run.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "base/result.h"
#include "cluster/replan/better_plan.h"
#include "partitioner/report/planning_input.h"

namespace motley {

// One owner thread. Only the destructor waits; it cancels a running search.
class PlanSearch {
 public:
  // find_better_plan(), or a test's search. It ends early once input.options.watch says so.
  using Find = std::function<Result<std::optional<BetterPlan>>(
      const PlanningInput& input, const RunMeasurement& run, double least_gain)>;

  explicit PlanSearch(PlanningInput input, Find find = find_better_plan);
  ~PlanSearch();
  PlanSearch(const PlanSearch&) = delete;
  PlanSearch& operator=(const PlanSearch&) = delete;

  // Starts the search with these arguments. kInternal if no thread can be created.
  // REQUIRES: !is_busy().
  [[nodiscard]] Result<void> begin(RunMeasurement run, double least_gain);

  // True from begin() until take() has returned the result.
  [[nodiscard]] bool is_busy() const { return found_.valid(); }

  // The result of the search, once it has completed.
  [[nodiscard]] std::optional<Result<std::optional<BetterPlan>>> take();

 private:
  class Watch;

  std::unique_ptr<Watch> watch_;
  const PlanningInput input_;
  const Find find_;
  std::future<Result<std::optional<BetterPlan>>> found_;
};

}  // namespace motley
