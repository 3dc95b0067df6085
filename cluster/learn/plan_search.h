// PlanSearch: looks for a better plan on a thread of its own, while the run goes on.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>

#include "base/result.h"
#include "cluster/learn/better_plan.h"
#include "partitioner/advise/planning_input.h"

namespace motley {

// One owner thread, which never waits but in the destructor: that ends a search under way.
class PlanSearch {
 public:
  explicit PlanSearch(PlanningInput input);
  ~PlanSearch();
  PlanSearch(const PlanSearch&) = delete;
  PlanSearch& operator=(const PlanSearch&) = delete;

  // find_better_plan() of these. kInternal where no thread can be had. REQUIRES: !is_busy().
  [[nodiscard]] Result<void> begin(RunMeasurement run, double least_gain);

  // From begin() until take() has given what was found.
  [[nodiscard]] bool is_busy() const { return found_.valid(); }

  // What the search found, once it is over.
  [[nodiscard]] std::optional<Result<std::optional<BetterPlan>>> take();

 private:
  class Watch;

  std::unique_ptr<Watch> watch_;
  const PlanningInput input_;
  std::future<Result<std::optional<BetterPlan>>> found_;
};

}  // namespace motley
