// SearchSpace: what the searches may choose from, and what they find.
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
  Recompute recompute = Recompute::kAuto;      // auto: where a stage does not fit without

  // Pins, resolved. Empty = no rule.
  std::vector<bool> usable;                 // [slot]
  std::vector<std::vector<bool>> may_hold;  // [slot][layer] of a layer's slots at least one
  std::vector<std::vector<int>> must_use;   // of each of these lists of slots at least one
};

// A stage: the layers from first_layer to the next stage's, on one slot or on several replicas.
struct StageChoice {
  std::vector<int> slots;   // of the cost model, ascending
  std::vector<int> shares;  // [of slots] micro-batches of a step
  int first_layer = 0;
  bool recompute = false;
  int codec = 0;  // of SearchSpace::codecs: of the boundary behind it

  friend bool operator==(const StageChoice&, const StageChoice&) = default;
};

struct Candidate {
  std::vector<StageChoice> stages;
  double estimate_s = 0;  // of a step
  double period_s = 0;    // of a micro-batch
};

// Fewer stages, fewer slots, then the order of slots, layers and codecs: total, so that equally
// good candidates are told apart in one way only.
[[nodiscard]] bool is_simpler(const Candidate& a, const Candidate& b);

}  // namespace motley
