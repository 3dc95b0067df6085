// BatchLoss: the loss of a batch on one rank, its part of the vote.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "models/spec/prediction_counts.h"

namespace motley {

struct BatchLoss {
  // Number of the loss's terms, or the sum of their weights; 0 on ranks without the loss.
  double count = 0;
  double sum = 0;                 // over those terms
  std::optional<double> correct;  // the correct predictions among `count`, if counted
  std::optional<PredictionCounts> predictions = {};  // in evaluation, if counted
};

// A count for reports: rounded to a whole number, but 0 only for none.
[[nodiscard]] inline std::int64_t reported_count(double count) {
  return static_cast<std::int64_t>(count > 0 && count < 1 ? 1 : std::llround(count));
}

}  // namespace motley
