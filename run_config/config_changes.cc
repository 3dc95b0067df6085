#include "run_config/config_changes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "run_config/config_keys.h"
#include "run_config/config_value.h"
#include "run_config/optimizers.h"
#include "run_config/schedule_length.h"

namespace motley {
namespace {

// Not run.threads: libraries add in another order with another number of threads.
constexpr std::array<std::string_view, 3> kSectionsOfSpeed = {"parallel", "comm", "checkpoint"};
// train.epochs has its effect as train.steps.
constexpr std::array<std::string_view, 18> kKeysWithoutEffect = {"model.path",
                                                                 "model.init_from",
                                                                 "data.path",
                                                                 "data.suffixes",
                                                                 "data.changed",
                                                                 "data.dtype",
                                                                 "data.allow_nonfinite",
                                                                 "data.skip_damaged",
                                                                 "train.max_skipped",
                                                                 "train.eval_every",
                                                                 "train.eval_batches",
                                                                 "train.epochs",
                                                                 "train.early_stopping",
                                                                 "run.dir",
                                                                 "run.restarts",
                                                                 "run.patience_s",
                                                                 "run.trace_steps",
                                                                 "run.tensorboard"};

constexpr std::array<std::string_view, 5> kKeysOfRounds = {
    "train.synchronous_start", "train.outer_lr", "train.outer_momentum", "parallel.rounds_overlap",
    "compression.pseudo_gradients"};

// These keys together determine the end of the learning-rate schedule
// (run_config/schedule_length.h).
bool is_of_schedule_length(const ConfigEntry& entry) {
  return entry.name == "train.steps" || entry.name == "train.schedule_steps";
}

template <class List>
bool holds(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

// A key of some optimizers has an effect only with one of them.
bool is_read(std::string_view key, const TrainConfig& train) {
  const bool is_of_some = std::ranges::any_of(
      optimizers(), [&](const OptimizerFacts& each) { return holds(each.keys, key); });
  return !is_of_some || holds(optimizer_of(train).keys, key);
}

// Whether a started run with this configuration uses the key's value.
bool has_effect(const ConfigEntry& entry, const Config& config) {
  if (entry.name == "parallel.rounds") return true;
  if (holds(kKeysOfRounds, entry.name)) return config.parallel.rounds != "off";
  if (holds(kSectionsOfSpeed, entry.section()) || holds(kKeysWithoutEffect, entry.name)) {
    return false;
  }
  if (!is_read(entry.name, config.train)) return false;
  if (entry.name == "data.holdout") return config.data.holdout_path.empty();
  if (entry.name == "data.crop_pixels") return holds(config.data.augment, "crop");
  if (entry.name == "train.decay_steps") return config.train.schedule == "wsd";
  if (entry.name == "train.min_lr" || is_of_schedule_length(entry)) {
    return config.train.schedule != "constant";
  }
  return true;
}

}  // namespace

std::vector<ConfigChange> result_changes(const Config& from, const Config& to) {
  std::vector<ConfigChange> changes;
  for (const ConfigEntry& entry : config_entries()) {
    if (!has_effect(entry, from) && !has_effect(entry, to)) continue;
    if (get_value(from, entry) == get_value(to, entry)) continue;
    // The held-out data may move; whether there is any decides what is trained on.
    if (entry.name == "data.holdout_path" &&
        from.data.holdout_path.empty() == to.data.holdout_path.empty()) {
      continue;
    }
    if (is_of_schedule_length(entry) && schedule_length(from.train) == schedule_length(to.train)) {
      continue;
    }
    changes.push_back({entry.name, value_to_toml(from, entry), value_to_toml(to, entry)});
  }
  return changes;
}

}  // namespace motley
