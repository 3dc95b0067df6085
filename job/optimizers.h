// The optimizers that train.optimizer may name, and what is decided from the choice: one entry
// each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "job/config.h"

namespace motley {

enum class OptimizerKind { kAdamw, kSgd };

struct OptimizerFacts {
  OptimizerKind kind = OptimizerKind::kAdamw;
  const char* name = "";  // of train.optimizer

  // What it keeps of each parameter, each as large as that, in the order in which updates take
  // them; as in checkpoints.
  std::vector<std::string_view> moments;

  // The configuration keys that it reads and not every optimizer does. Changes of others have no
  // effect while it trains.
  std::vector<std::string_view> keys;
};

// In the order of the documentation; the first is the default.
[[nodiscard]] std::span<const OptimizerFacts> optimizers();

// Their names, in that order.
[[nodiscard]] std::vector<const char*> optimizer_names();

// REQUIRES: a validated configuration.
[[nodiscard]] const OptimizerFacts& optimizer_of(const TrainConfig& train);

// How many moments it keeps: what plans count as memory.
[[nodiscard]] int moments_per_parameter(const TrainConfig& train);

}  // namespace motley
