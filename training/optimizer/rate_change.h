// Changes of the learning rate on resume: a schedule with another end makes the rate jump. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run_config/config.h"

namespace motley {

// The run's configuration and progress so far.
struct RateHistory {
  TrainConfig train;
  // Whether its rates were legacy_learning_rate()'s (training/optimizer/lr_schedule.h).
  bool uses_legacy_rates = false;
  std::int64_t steps_done = 0;  // at least 1
};

// "the learning rate 7.4e-08 (step 100) -> 0.00015 (step 101)" if a change of the configuration
// changes the rate of the next step; otherwise nullopt.
[[nodiscard]] std::optional<std::string> rate_jump(const RateHistory& before,
                                                   const TrainConfig& now);

// How to continue without a jump: the option that keeps the run's previous schedule, unless it has
// ended at 0, and for wsd the checkpoint before the decay. nullopt if there is neither, the length
// is unchanged, or the schedule is constant.
[[nodiscard]] std::optional<std::string> option_without_jump(const RateHistory& before,
                                                             const TrainConfig& now);

// Whether the steps so far had the rates that the new configuration gives them: a run with it from
// the start would be in the same state. Only schedules that stay at their highest rate (wsd before
// its decay, constant) can change like this. Compares what determines the rate, and nothing else.
[[nodiscard]] bool has_same_rates_so_far(const RateHistory& before, const TrainConfig& now);

// A message for a run that used the earlier convention, if the next step's rate differs by it.
[[nodiscard]] std::optional<std::string> convention_change(const RateHistory& before,
                                                           const TrainConfig& now);

// A message if the last steps have rate 0, after the end of the schedule.
[[nodiscard]] std::optional<std::string> idle_steps(const TrainConfig& train,
                                                    std::int64_t first_step);

// How to train a finished run further, and how the rate then changes.
[[nodiscard]] std::string longer_run_remedy(const TrainConfig& train, std::int64_t steps_done);

}  // namespace motley
