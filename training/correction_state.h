// Restores the state of momentum-corrected all-reduces from a checkpoint.
#pragma once

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/executor.h"
#include "plan/plan.h"
#include "run_config/config.h"
#include "training/stage_state.h"

namespace motley {

// Called between fill_state() and the first step. With the plan that wrote the checkpoint, each
// rank restores its own residual and velocity, as if it had never stopped. With another plan, the
// totals over all ranks go to one of the ranks that send the value. If a value is no longer
// momentum-corrected, its velocity becomes the optimizer's momentum
// (StageState::end_momentum_correction). Does nothing if the checkpoint has no such state.
// `training`: the schedule of the steps. REQUIRES: the reader has a manifest, of this model.
[[nodiscard]] Result<void> restore_correction_state(const CheckpointReader& reader,
                                                    const TrainConfig& train,
                                                    const ModelSpec& model,
                                                    const Plan& plan,
                                                    const Schedule& training,
                                                    StageState& state,
                                                    Executor& executor);

}  // namespace motley
