// The learning rate of each step.
#pragma once

#include <cstdint>

#include "job/config.h"

namespace motley {

// With `step` counted from 1: rises in equal parts to train.lr at step warmup_steps, then falls to
// train.min_lr at step train.steps (cosine: half a period, linear: a line) or stays (constant).
// After train.steps it stays where it ended. REQUIRES: a validated configuration, step >= 1.
[[nodiscard]] double learning_rate(const TrainConfig& train, std::int64_t step);

}  // namespace motley
