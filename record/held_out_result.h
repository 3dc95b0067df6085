// HeldOutResult: what an evaluation measured on the held-out data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/step_metrics.h"

namespace motley {

struct HeldOutResult {
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> perplexity = {};     // if the loss is the cross entropy of tokens
  std::optional<double> accuracy = {};       // share of targets with the highest score, if counted
  std::optional<double> top5_accuracy = {};  // with one of the five highest

  friend bool operator==(const HeldOutResult&, const HeldOutResult&) = default;
};

// nullopt: the step has no evaluation, or one without targets.
[[nodiscard]] std::optional<HeldOutResult> held_out_result(const StepMetrics& metrics);

// "held-out 2.401 (perplexity 11.03), 45.31 % correct, 71.02 % in the top 5", without what was not
// measured.
[[nodiscard]] std::string held_out_text(const HeldOutResult& result);

}  // namespace motley
