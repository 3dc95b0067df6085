#include "training/optimizer/rate_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "run_config/schedule_length.h"
#include "training/optimizer/lr_schedule.h"

namespace motley {
namespace {

constexpr double kSameRate = 1e-9;  // of train.lr

bool is_same(double a, double b, const TrainConfig& train) {
  return std::abs(a - b) <= kSameRate * train.lr;
}

double rate_of_last_step(const RateHistory& before) {
  return before.uses_legacy_rates ? legacy_learning_rate(before.train, before.steps_done)
                                  : learning_rate(before.train, before.steps_done);
}

// The last step whose rate does not depend on the length of the schedule, for schedules that stay
// at their highest rate.
std::int64_t last_step_at_peak(const TrainConfig& train) {
  if (train.schedule == "constant") return std::numeric_limits<std::int64_t>::max();
  // The decay begins with the highest rate.
  return train.schedule == "wsd" ? last_stable_step(train) + 1 : 0;
}

std::string stable_checkpoint_text(std::int64_t step) {
  return fmt::format(
      "from the checkpoint of step {}, before the decay, a longer run continues without a jump: "
      "copy it into another run's folder (docs/checkpoints.md, \"Longer runs\")",
      step);
}

std::string jump_text(double from, double to, std::int64_t steps_done) {
  return fmt::format("the learning rate {:.3g} (step {}) -> {:.3g} (step {})", from, steps_done, to,
                     steps_done + 1);
}

}  // namespace

std::optional<std::string> rate_jump(const RateHistory& before, const TrainConfig& now) {
  const std::int64_t next = before.steps_done + 1;
  const double rate = learning_rate(now, next);
  if (is_same(rate, learning_rate(before.train, next), now)) return std::nullopt;
  return jump_text(rate_of_last_step(before), rate, before.steps_done);
}

std::optional<std::string> option_without_jump(const RateHistory& before, const TrainConfig& now) {
  const std::int64_t length = schedule_length(before.train);
  if (before.train.schedule == "constant" || schedule_length(now) == length) return std::nullopt;
  const bool is_over = before.steps_done >= length && before.train.min_lr <= 0;
  std::string text;
  if (!is_over)
    text = fmt::format("--set train.schedule_steps={} keeps the run's schedule", length);
  if (const std::int64_t stable = last_stable_step(before.train);
      stable > 0 && before.steps_done > stable) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", stable_checkpoint_text(stable));
  }
  return text.empty() ? std::nullopt : std::optional(text);
}

bool has_same_rates_so_far(const RateHistory& before, const TrainConfig& now) {
  const TrainConfig& then = before.train;
  if (before.uses_legacy_rates || then.lr != now.lr || then.warmup_steps != now.warmup_steps) {
    return false;
  }
  if (before.steps_done > std::min(last_step_at_peak(then), last_step_at_peak(now))) return false;
  // The warm-up is the same; after it all steps have one rate, whose last bit depends on min_lr.
  const std::int64_t first = now.warmup_steps + 1;
  return before.steps_done < first || learning_rate(then, first) == learning_rate(now, first);
}

std::optional<std::string> convention_change(const RateHistory& before, const TrainConfig& now) {
  const std::int64_t next = before.steps_done + 1;
  const double then = legacy_learning_rate(now, next);
  const double rate = learning_rate(now, next);
  if (!before.uses_legacy_rates || is_same(then, rate, now)) return std::nullopt;
  return fmt::format(
      "the version of Motley that started this run gave each step the learning rate of the next "
      "one: step {} now has {:.4g} instead of {:.4g}, by the convention of PyTorch and "
      "transformers",
      next, rate, then);
}

std::optional<std::string> idle_steps(const TrainConfig& train, std::int64_t first_step) {
  const std::int64_t first = std::max(first_step, schedule_length(train) + 1);
  if (first > train.steps || learning_rate(train, first) > 0) return std::nullopt;
  return fmt::format(
      "steps {} to {} have learning rate 0 and train nothing: the schedule ends with step {} "
      "(train.schedule_steps) at train.min_lr = 0",
      first, train.steps, schedule_length(train));
}

std::string longer_run_remedy(const TrainConfig& train, std::int64_t steps_done) {
  const std::int64_t longer = 2 * steps_done;
  const std::string command =
      fmt::format("to train further: --resume --set train.steps={}", longer);
  if (train.schedule == "constant") return command;
  TrainConfig stretched = train;
  stretched.steps = longer;
  stretched.schedule_steps = longer;
  const double last = learning_rate(train, steps_done);
  std::string text =
      fmt::format("{} --set train.schedule_steps={} --allow-changes, {}", command, longer,
                  jump_text(last, learning_rate(stretched, steps_done + 1), steps_done));
  if (train.min_lr > 0) {
    text += fmt::format("\nor {} --set train.schedule_steps={}, at train.min_lr = {:.3g}", command,
                        schedule_length(train), train.min_lr);
  }
  if (const std::int64_t stable = last_stable_step(train); stable > 0 && steps_done > stable) {
    text += "\nor " + stable_checkpoint_text(stable);
  }
  return text;
}

}  // namespace motley
