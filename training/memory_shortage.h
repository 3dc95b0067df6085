// The error for a device that ran out of memory during training: what the rank holds there, and
// what would fit.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

struct MemoryShortage {
  std::string during;          // "forward of micro-batch 3"
  std::string said;            // message of the library whose allocation failed
  std::int64_t had_bytes = 0;  // free there before the rank allocated any; 0 = unknown
};

// kInfeasible. REQUIRES: the plan is one of the model and contains the rank.
[[nodiscard]] Error error_of(const MemoryShortage& shortage,
                             const TrainConfig& train,
                             const ModelSpec& model,
                             const Plan& plan,
                             Rank self);

}  // namespace motley
