// How long the schedule of the learning rate is.
#pragma once

#include <cstdint>

#include "job/config.h"

namespace motley {

// The steps after which the rate has come to its end, warm-up included.
[[nodiscard]] inline std::int64_t schedule_length(const TrainConfig& train) {
  return train.schedule_steps > 0 ? train.schedule_steps : train.steps;
}

}  // namespace motley
