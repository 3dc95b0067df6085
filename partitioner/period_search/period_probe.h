// PeriodProbe: finds pipelines of single slots with at most a given period. Two implementations:
// over all sets of slots (exact; for few or similar slots), and a beam search (for many different
// slots).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "partitioner/cost/stage_reach.h"

namespace motley {

// The stages of a pipeline by their slots and first layers; [stage] from the front.
struct Pipeline {
  std::vector<int> slots;
  std::vector<int> first_layers;
};

class PeriodProbe {
 public:
  virtual ~PeriodProbe() = default;
  // Pipelines within the period to which `reach` is set, the promising ones first, and at most one
  // for each number of stages. Empty: none found.
  [[nodiscard]] virtual std::vector<Pipeline> pipelines(const StageReach& reach) = 0;
  // Whether finding none proves that none exists.
  [[nodiscard]] virtual bool is_complete() const = 0;
  // The number of tails examined.
  [[nodiscard]] virtual std::int64_t tails() const = 0;
};

// Whether all_sets_probe can search these classes: the product of (members + 1) over them is small.
[[nodiscard]] bool can_probe_all_sets(const std::vector<std::vector<int>>& classes);

// A dynamic programme over the multisets of slots, from the last stage backwards: for each, and for
// each class in front, the first layer that they can reach. REQUIRES: can_probe_all_sets.
[[nodiscard]] std::unique_ptr<PeriodProbe> all_sets_probe(
    const std::vector<std::vector<int>>& classes,
    const ThroughputBound& throughput_bound,
    int layer_count);

// A beam search over the boundaries of the model, from the end: each boundary retains the tails
// that waste the least capacity.
[[nodiscard]] std::unique_ptr<PeriodProbe> beam_probe(const std::vector<std::vector<int>>& classes,
                                                      const ThroughputBound& throughput_bound,
                                                      int layer_count);

}  // namespace motley
