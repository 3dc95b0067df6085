// What a rank's parameters and moments are before the first step of a session.
#pragma once

#include <string>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "training/stage_state.h"

namespace motley {

// Whether model.init_from, if it is set, holds weights of the configured model: kConfig where it
// does not, kCorrupt where it cannot be read. Reads no values.
[[nodiscard]] Result<void> check_initial_weights(const ModelConfig& model);

// Fills the state: from the checkpoint `resume_from`, else from model.init_from, else by seed ("" =
// not from there). Returns where the training stands. kConfig when the checkpoint is of another
// model, kCorrupt when something in it is absent or damaged. `work` counts the bytes.
[[nodiscard]] Result<CheckpointState> fill_state(StageState& state,
                                                 const Config& config,
                                                 const ModelSpec& model,
                                                 const std::string& resume_from,
                                                 WorkCounter& work);

}  // namespace motley
