// The length of the learning-rate schedule, and of its decay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "run_config/config.h"

namespace motley {

// The number of steps until the rate has its final value, warm-up included.
[[nodiscard]] inline std::int64_t schedule_length(const TrainConfig& train) {
  return train.schedule_steps > 0 ? train.schedule_steps : train.steps;
}

// The warm-up if its length is not given: at most a tenth of the schedule, so that a short run,
// such as a first try, does not consist of warm-up only.
[[nodiscard]] inline std::int64_t default_warmup_steps(const TrainConfig& train) {
  return std::min({TrainConfig{}.warmup_steps, train.steps, schedule_length(train) / 10});
}

// The number of steps at the end of the schedule in which the rate falls: all steps after the
// warm-up for cosine and linear; for wsd train.decay_steps, or a tenth of the schedule, at least
// one step and never a part of the warm-up. REQUIRES: a validated configuration.
[[nodiscard]] inline std::int64_t decay_length(const TrainConfig& train) {
  const std::int64_t after_warmup = schedule_length(train) - train.warmup_steps;
  if (train.schedule != "wsd") return after_warmup;
  if (train.decay_steps > 0) return train.decay_steps;
  return std::min(after_warmup, std::max<std::int64_t>(1, schedule_length(train) / 10));
}

// The last step before the decay of wsd: a run that continues from it with another length of the
// schedule has had the same rates so far. 0 = there is none, or the schedule is another one.
[[nodiscard]] inline std::int64_t last_stable_step(const TrainConfig& train) {
  return train.schedule == "wsd" ? schedule_length(train) - decay_length(train) : 0;
}

}  // namespace motley
