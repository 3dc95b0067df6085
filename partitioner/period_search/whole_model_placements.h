// All layers on one device, or a copy of them on each of several (data parallelism): the best over
// the added shapes.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

class WholeModelPlacements {
 public:
  // Adds the table's shape. Data parallelism uses the fastest of the slots.
  void add(const StageTable& table, const SearchSpace& space, std::span<const int> slots);

  // nullopt if the model fits on no device.
  [[nodiscard]] const std::optional<ShapedCandidate>& single() const { return single_; }

  // The best for each number of devices, from two on, in the order of that number.
  [[nodiscard]] std::vector<ShapedCandidate> data_parallel() const;

  // The best on one device, and on the best number of devices, if there are any.
  [[nodiscard]] std::vector<ShapedCandidate> best() const;

 private:
  std::optional<ShapedCandidate> single_;
  std::map<std::size_t, ShapedCandidate> data_parallel_;  // by number of devices
};

}  // namespace motley
