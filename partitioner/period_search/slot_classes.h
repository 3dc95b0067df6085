// Classes of slots that can be exchanged without changing the cost of any plan.
#pragma once

#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"

namespace motley {

// [class] its slots, ascending; classes in the order of their first slots. Only usable slots. Two
// slots are of one class if they have the same costs, pins, and links to every other slot.
[[nodiscard]] std::vector<std::vector<int>> slot_classes(const CostModel& cost,
                                                         const SearchSpace& space);

}  // namespace motley
