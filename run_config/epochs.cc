#include "run_config/epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "run_config/config_io.h"
#include "run_config/schedule_length.h"

namespace motley {
namespace {

constexpr double kStepsOfEpochsMax = 1e12;  // the range of train.steps

Error epochs_error(std::string what, std::string cause, std::string remedy) {
  return with_key({ErrorCode::kConfig, std::move(what), std::move(cause), std::move(remedy)},
                  "train.epochs");
}

}  // namespace

std::int64_t steps_of_epochs(double epochs, std::uint64_t samples, int global_batch) {
  // Rounded first: 0.1 epochs of 1,000 samples are 100 samples, not a little more.
  const double used = std::round(epochs * static_cast<double>(samples));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(used / global_batch)));
}

std::string epochs_text(const TrainConfig& train, std::uint64_t samples) {
  return fmt::format("{:g} epoch{} of {} samples = {} step{}", train.epochs,
                     train.epochs == 1 ? "" : "s", samples, train.steps,
                     train.steps == 1 ? "" : "s");
}

Result<Config> with_steps_of_epochs(Config config,
                                    const std::map<std::string, std::string>& origins,
                                    std::optional<std::uint64_t> samples) {
  TrainConfig& train = config.train;
  if (train.epochs <= 0) return config;
  if (!samples) {
    if (train.steps > 0) return config;
    return epochs_error(
        "the number of steps of train.epochs is not known",
        "no machine of the run can read the data, so its samples cannot be counted",
        "give train.steps = epochs * samples / train.global_batch in its place, or make data.path "
        "readable on a machine");
  }
  if (train.epochs * static_cast<double>(*samples) / train.global_batch > kStepsOfEpochsMax) {
    return epochs_error(fmt::format("train.epochs = {:g} is too many", train.epochs),
                        fmt::format("an epoch has {} samples", *samples), "lower train.epochs");
  }
  const std::int64_t given = train.steps;
  train.steps = steps_of_epochs(train.epochs, *samples, train.global_batch);
  if (given > 0 && given != train.steps) {
    return epochs_error(
        fmt::format("train.steps = {} and train.epochs = {:g} contradict each other", given,
                    train.epochs),
        fmt::format("{}, of {} samples each", epochs_text(train, *samples), train.global_batch),
        "give one of the two; `--set` of one replaces the other");
  }
  if (is_default(origins, "train.warmup_steps")) train.warmup_steps = default_warmup_steps(train);
  MOTLEY_TRY(validate_config(config));
  return config;
}

}  // namespace motley
