// The length of the learning-rate schedule.
#pragma once

#include <cstdint>

#include "run_config/config.h"

namespace motley {

// The number of steps until the rate has its final value, warm-up included.
[[nodiscard]] inline std::int64_t schedule_length(const TrainConfig& train) {
  return train.schedule_steps > 0 ? train.schedule_steps : train.steps;
}

}  // namespace motley
