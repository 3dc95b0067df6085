// The length of a run that is given in epochs (train.epochs): its steps are known once the data is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "run_config/config.h"

namespace motley {

// The steps that use the training samples `epochs` times, the last step perhaps with some of the
// next epoch: samples follow one another across epochs. At least 1. REQUIRES: epochs > 0.
[[nodiscard]] std::int64_t steps_of_epochs(double epochs, std::uint64_t samples, int global_batch);

// "3 epochs of 1000 samples = 94 steps".
[[nodiscard]] std::string epochs_text(const TrainConfig& train, std::uint64_t samples);

// The configuration with the number of its steps, and with the default warm-up for it unless
// `origins` has another. Unchanged if it is not given in epochs. `samples`: of one epoch; nullopt =
// unknown. kConfig if the steps are neither known nor given, if the given ones contradict the
// epochs, and as validate_config() for the completed configuration.
[[nodiscard]] Result<Config> with_steps_of_epochs(Config config,
                                                  const std::map<std::string, std::string>& origins,
                                                  std::optional<std::uint64_t> samples);

}  // namespace motley
