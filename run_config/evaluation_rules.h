// What a run does with its evaluations.
#pragma once

#include "run_config/config.h"

namespace motley {

// Whether the run compares its evaluations, and so keeps a record of them
// (checkpoint/evaluations/evaluation_record.h).
[[nodiscard]] inline bool compares_evaluations(const Config& config) {
  return config.checkpoint.keep_best || config.train.early_stopping > 0;
}

}  // namespace motley
