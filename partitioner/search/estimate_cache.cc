#include "partitioner/search/estimate_cache.h"

#include <algorithm>

namespace motley {

const StepEstimate& EstimateCache::of(const CostModel& cost, const StepShape& shape) {
  const Entry* alike = nullptr;  // the same costs with another shape
  for (const Entry& entry : entries_) {
    if (&entry.table.cost() != &cost) continue;
    if (entry.table.shape() == shape) return entry.estimate;
    if (entry.table.shape().micro_batch == shape.micro_batch) alike = &entry;
  }
  return entries_
      .emplace_back(alike != nullptr ? alike->table.reshaped(shape) : StageTable(cost, shape),
                    space_)
      .estimate;
}

}  // namespace motley
