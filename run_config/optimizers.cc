#include "run_config/optimizers.h"

#include <algorithm>

#include "base/check.h"

namespace motley {

std::span<const OptimizerFacts> optimizers() {
  static const std::vector<OptimizerFacts> kOptimizers = {
      {OptimizerKind::kAdamw,
       "adamw",
       {"exp_avg", "exp_avg_sq"},
       {},
       {"train.beta1", "train.beta2", "train.epsilon"}},
      {OptimizerKind::kSgd, "sgd", {"momentum"}, {}, {"train.momentum"}},
      {OptimizerKind::kLion, "lion", {"exp_avg"}, {}, {"train.beta1", "train.beta2"}},
      {OptimizerKind::kMuon,
       "muon",
       {"exp_avg", "exp_avg_sq"},
       {"momentum"},
       {"train.beta1", "train.beta2", "train.epsilon", "train.muon_momentum"}},
  };
  return kOptimizers;
}

std::vector<const char*> optimizer_names() {
  std::vector<const char*> names;
  for (const OptimizerFacts& each : optimizers()) names.push_back(each.name);
  return names;
}

const OptimizerFacts& optimizer_of(const TrainConfig& train) {
  const auto found =
      std::ranges::find(optimizers(), std::string_view(train.optimizer),
                        [](const OptimizerFacts& each) { return std::string_view(each.name); });
  MOTLEY_CHECK(found != optimizers().end(), "train.optimizer is '{}'", train.optimizer);
  return *found;
}

int moments_per_parameter(const TrainConfig& train) {
  const OptimizerFacts& facts = optimizer_of(train);
  const std::size_t moments = std::max(facts.moments.size(), facts.matrix_moments.size());
  return static_cast<int>(moments) + (train.ema > 0 ? 1 : 0);
}

}  // namespace motley
