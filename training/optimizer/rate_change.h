// What the learning rate does where a run goes on: a schedule that ends elsewhere than before makes
// it jump. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "job/config.h"

namespace motley {

// What the run has trained with so far.
struct RateHistory {
  TrainConfig train;
  // Its rates were early_learning_rate()'s (training/optimizer/lr_schedule.h).
  bool is_early = false;
  std::int64_t steps_done = 0;  // at least 1
};

// "the learning rate 7.4e-08 (step 100) -> 0.00015 (step 101)" where a change of the configuration
// gives the next step another rate than it would have had; nothing where none does.
[[nodiscard]] std::optional<std::string> rate_jump(const RateHistory& before,
                                                   const TrainConfig& now);

// How the schedule that the run has had goes on; nothing where its length stays the same, it has
// none, or it has come to its end at 0.
[[nodiscard]] std::optional<std::string> way_without_jump(const RateHistory& before,
                                                          const TrainConfig& now);

// A line for a run whose rates were the earlier convention's, where the next step differs by that.
[[nodiscard]] std::optional<std::string> convention_change(const RateHistory& before,
                                                           const TrainConfig& now);

// A line where the last steps have the rate 0, after the end of the schedule.
[[nodiscard]] std::optional<std::string> idle_steps(const TrainConfig& train,
                                                    std::int64_t first_step);

// How a run that has done all of its steps trains further, with what the rate then does.
[[nodiscard]] std::string longer_run_remedy(const TrainConfig& train, std::int64_t steps_done);

}  // namespace motley
