// SearchSpace: the choices of the searches, and their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"

namespace motley {

enum class Recompute { kAuto, kNever, kAlways };

struct SearchSpace {
  std::vector<std::string> codecs = {"none"};  // of a boundary; at least one
  int stages = 0;                              // exactly that many; 0 = any number
  bool replicas = true;                        // several slots for one stage
  Recompute recompute = Recompute::kAuto;      // auto: if a stage does not fit otherwise

  // Pins, resolved. Empty = no restriction.
  std::vector<bool> usable;                 // [slot]
  std::vector<std::vector<bool>> may_hold;  // [slot][layer] each layer has at least one slot
  std::vector<std::vector<int>> must_use;   // at least one slot of each of these lists
};

// A stage: the layers from first_layer up to the next stage's, on one slot or on several replicas.
struct StageChoice {
  std::vector<int> slots;        // of the cost model, ascending
  std::vector<int> batch_split;  // [of slots] micro-batches of a step
  int first_layer = 0;
  bool recompute = false;
  int codec = 0;  // index in SearchSpace::codecs, for the boundary behind it

  friend bool operator==(const StageChoice&, const StageChoice&) = default;
};

struct Candidate {
  std::vector<StageChoice> stages;
  double estimate_s = 0;  // of a step
  double period_s = 0;    // of a micro-batch
};

// Order by fewer stages, then fewer slots, then slots, layers and codecs: a total order, so that
// ties between equally good candidates are deterministic.
[[nodiscard]] bool is_simpler(const Candidate& a, const Candidate& b);

}  // namespace motley
