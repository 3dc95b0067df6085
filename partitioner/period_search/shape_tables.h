// ShapeTables: the costs of layers, added up once for each micro-batch size of a search.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

class ShapeTables {
 public:
  // Both must outlive it.
  ShapeTables(const CostModel& cost, const SearchSpace& space) : cost_(cost), space_(space) {}

  [[nodiscard]] StageTable of(const StepShape& shape);

  // For the model without its tied parameter.
  [[nodiscard]] StageTable untied(const StepShape& shape);

  // The shapes of the micro-batch sizes with the least bounds on the step, none of them above
  // ceiling_s; at most `count` sizes.
  [[nodiscard]] std::vector<std::vector<StepShape>> promising(std::span<const StepShape> shapes,
                                                              std::size_t count,
                                                              double ceiling_s);

 private:
  const CostModel& cost_;
  const SearchSpace& space_;
  std::map<int, StageTable> tables_;  // by micro-batch size
  std::unique_ptr<const CostModel> untied_cost_;
  std::map<int, StageTable> untied_tables_;  // by micro-batch size
};

}  // namespace motley
