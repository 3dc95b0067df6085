// What is said where a device's memory ran out while a rank trained: what the rank holds there, and
// what would fit.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"

namespace motley {

struct MemoryShortage {
  std::string during;          // "forward of micro-batch 3"
  std::string said;            // by the library whose request failed
  std::int64_t had_bytes = 0;  // free there before the rank took any; 0 = unknown
};

// kInfeasible. REQUIRES: the plan is one of the model, and has the rank.
[[nodiscard]] Error error_of(const MemoryShortage& shortage,
                             const TrainConfig& train,
                             const ModelSpec& model,
                             const Plan& plan,
                             Rank self);

}  // namespace motley
