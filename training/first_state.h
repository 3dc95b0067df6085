// The parameters and moments of a rank before the first step of a session.
#pragma once

#include <string>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "models/spec/model_spec.h"
#include "run_config/config.h"
#include "training/stage_state.h"

namespace motley {

// Checks that model.init_from, if set, holds weights of the configured model: kConfig if it does
// not, kCorrupt if it cannot be read. Reads no values.
[[nodiscard]] Result<void> check_initial_weights(const ModelConfig& model);

// Fills the state from the checkpoint `resume_from`, else from model.init_from, else by seed ("" =
// not set). Returns the training progress. kConfig if the checkpoint is of another model, kCorrupt
// if a part of it is absent or damaged. `work` counts the bytes.
[[nodiscard]] Result<CheckpointState> fill_state(StageState& state,
                                                 const Config& config,
                                                 const ModelSpec& model,
                                                 const std::string& resume_from,
                                                 ProgressCounter& work);

}  // namespace motley
