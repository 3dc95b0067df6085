// EstimateCache: the estimates of a search by cost model and shape, each with its table computed
// once.
#pragma once

#include <deque>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

class EstimateCache {
 public:
  // `space` and the cost models passed to of() must outlive the cache.
  explicit EstimateCache(const SearchSpace& space) : space_(space) {}

  // Valid as long as the cache.
  [[nodiscard]] const StepEstimate& of(const CostModel& cost, const StepShape& shape);

 private:
  struct Entry {
    StageTable table;
    StepEstimate estimate;

    Entry(StageTable of_shape, const SearchSpace& space)
        : table(std::move(of_shape)), estimate(table, space) {}

    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
  };

  const SearchSpace& space_;
  std::deque<Entry> entries_;
};

}  // namespace motley
