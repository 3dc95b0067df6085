#include "partitioner/period_search/shape_tables.h"

#include <algorithm>
#include <utility>

#include "partitioner/cost/throughput_bound.h"

namespace motley {

StageTable ShapeTables::of(const StepShape& shape) {
  const auto found = tables_.try_emplace(shape.micro_batch, cost_, shape).first;
  return found->second.reshaped(shape);
}

StageTable ShapeTables::untied(const StepShape& shape) {
  if (!untied_cost_) untied_cost_ = std::make_unique<const CostModel>(cost_.without_tied());
  const auto found = untied_tables_.try_emplace(shape.micro_batch, *untied_cost_, shape).first;
  return found->second.reshaped(shape);
}

std::vector<std::vector<StepShape>> ShapeTables::promising(std::span<const StepShape> shapes,
                                                           std::size_t count,
                                                           double ceiling_s) {
  std::map<int, std::vector<StepShape>> by_size;
  for (const StepShape& shape : shapes) by_size[shape.micro_batch].push_back(shape);
  std::vector<std::pair<double, int>> order;
  for (const auto& [size, of_one_size] : by_size) {
    const StageTable table = of(of_one_size.front());
    const double bound_s =
        ThroughputBound(table, space_).step_bound_s(0, of_one_size.front().micro_batches);
    if (bound_s <= ceiling_s) order.emplace_back(bound_s, size);
  }
  std::ranges::sort(order);
  if (order.size() > count) order.resize(count);
  std::vector<std::vector<StepShape>> best;
  for (const auto& [bound_s, size] : order) best.push_back(std::move(by_size[size]));
  return best;
}

}  // namespace motley
