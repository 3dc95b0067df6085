#include "training/optimizer/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "run_config/schedule_length.h"

namespace motley {
namespace {

// The fraction of lr - min_lr that remains after `progress` of the decay.
double remaining_share(const std::string& schedule, double progress) {
  if (schedule == "constant") return 1;
  if (schedule == "linear" || schedule == "wsd") return 1 - progress;
  MOTLEY_CHECK(schedule == "cosine", "train.schedule is '{}'", schedule);
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double learning_rate(const TrainConfig& train, std::int64_t step) {
  MOTLEY_CHECK(step >= 1, "step {}", step);
  const std::int64_t before = step - 1;
  if (before < train.warmup_steps) {
    return train.lr * static_cast<double>(before) / static_cast<double>(train.warmup_steps);
  }
  const std::int64_t decay = decay_length(train);
  // At least 1: a validated warm-up may be as long as the schedule.
  const std::int64_t span = std::max<std::int64_t>(1, decay);
  const std::int64_t since_decay = before - (schedule_length(train) - decay);
  const std::int64_t done = std::clamp<std::int64_t>(since_decay, 0, span);
  const double progress = static_cast<double>(done) / static_cast<double>(span);
  return train.min_lr + (train.lr - train.min_lr) * remaining_share(train.schedule, progress);
}

double legacy_learning_rate(const TrainConfig& train, std::int64_t step) {
  return learning_rate(train, step + 1);
}

}  // namespace motley
