// The optimizers of train.optimizer and their properties: one entry each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "run_config/config.h"

namespace motley {

enum class OptimizerKind { kAdamw, kSgd, kLion, kMuon };

struct OptimizerFacts {
  OptimizerKind kind = OptimizerKind::kAdamw;
  const char* name = "";  // in train.optimizer

  // Its state per parameter, each of the parameter's size, in the order of the update functions;
  // names as in checkpoints.
  std::vector<std::string_view> moments;

  // The same for matrices of hidden layers (models/spec/hidden_matrices.h), if it has an update of
  // its own for these; otherwise empty, and they are updated like all parameters.
  std::vector<std::string_view> matrix_moments;

  // The configuration keys that it reads and not every optimizer does. Changes of other optimizers'
  // keys have no effect while it trains.
  std::vector<std::string_view> keys;
};

// In the order of the documentation; the first is the default.
[[nodiscard]] std::span<const OptimizerFacts> optimizers();

// Their names, in that order.
[[nodiscard]] std::vector<const char*> optimizer_names();

// REQUIRES: a validated configuration.
[[nodiscard]] const OptimizerFacts& optimizer_of(const TrainConfig& train);

// The number of moments, as plans count memory: the larger one, if matrices have another number,
// and one more for the average of train.ema.
[[nodiscard]] int moments_per_parameter(const TrainConfig& train);

}  // namespace motley
