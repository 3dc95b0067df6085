// TrainedStage: what the training loop reads of a rank's StageCompute after each step.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.h"
#include "pipeline/execute/stage_compute.h"

namespace motley {

// What the last vote decided.
struct StepOutcome {
  double loss = 0;  // mean over tokens
  std::int64_t tokens = 0;
  double grad_norm = 0;  // of the mean gradient, before clipping
  double lr = 0;
  bool skipped = false;
};

class TrainedStage : public StageCompute {
 public:
  // Of the last voted batch; for an evaluation only loss and tokens mean something.
  [[nodiscard]] virtual const StepOutcome& outcome() const = 0;

  // Where the training stands: after the last step.
  [[nodiscard]] virtual const CheckpointState& progress() const = 0;
};

}  // namespace motley
