#include "training/optimizer/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace motley {
namespace {

// What is left of lr - min_lr when `progress` of the steps after the warm-up are done.
double remaining_share(const std::string& schedule, double progress) {
  if (schedule == "constant") return 1;
  if (schedule == "linear") return 1 - progress;
  MOTLEY_CHECK(schedule == "cosine", "train.schedule is '{}'", schedule);
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double learning_rate(const TrainConfig& train, std::int64_t step) {
  MOTLEY_CHECK(step >= 1, "step {}", step);
  if (step <= train.warmup_steps) {
    return train.lr * static_cast<double>(step) / static_cast<double>(train.warmup_steps);
  }
  // Not empty: a validated warm-up that ends with the last step leaves no step but those after it.
  const std::int64_t after_warmup = std::max<std::int64_t>(1, train.steps - train.warmup_steps);
  const std::int64_t done = std::min(step - train.warmup_steps, after_warmup);
  const double progress = static_cast<double>(done) / static_cast<double>(after_warmup);
  return train.min_lr + (train.lr - train.min_lr) * remaining_share(train.schedule, progress);
}

}  // namespace motley
