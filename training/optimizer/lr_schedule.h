// The learning rate of each step, by the convention of PyTorch's schedulers and of transformers'
// get_*_schedule_with_warmup: docs/numerics.md.
#pragma once

#include <cstdint>

#include "run_config/config.h"

namespace motley {

// The rate of step number `step`, counted from 1: what those schedulers return after step - 1
// calls. Rises linearly from 0 at the first step to train.lr at step warmup_steps + 1. Then it
// stays there (constant), or falls (cosine: half a period; linear: a line; wsd: stays there until
// the decay, then a line) and reaches train.min_lr at the step after the last of the schedule
// (run_config/schedule_length.h), where it stays.
// REQUIRES: a validated configuration, step >= 1.
[[nodiscard]] double learning_rate(const TrainConfig& train, std::int64_t step);

// The same by the convention of runs that began before train.schedule_steps existed: one step ahead
// of it.
[[nodiscard]] double legacy_learning_rate(const TrainConfig& train, std::int64_t step);

}  // namespace motley
