// What sums of pushes kept, from a checkpoint back to where it is kept.
#pragma once

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/executor.h"
#include "plan/plan.h"
#include "training/stage_state.h"

namespace motley {

// Between fill_state() and the first step. Under the plan that wrote the checkpoint each rank goes
// on with what it kept, as if it had never stopped. Under another one, what all ranks kept of a
// value goes to one of those that send it; where its sum is of no pushes any more, to the
// optimizer's momentum (StageState::end_pushes). Does nothing where the checkpoint has none.
// `training`: the schedule of the steps. REQUIRES: the reader has a manifest, of this model.
[[nodiscard]] Result<void> restore_pushes(const CheckpointReader& reader,
                                          const TrainConfig& train,
                                          const ModelSpec& model,
                                          const Plan& plan,
                                          const Schedule& training,
                                          StageState& state,
                                          Executor& executor);

}  // namespace motley
