// LossOptions: how the cross entropy of the native models weights its terms, as PyTorch's
// CrossEntropyLoss does. With V classes, weights w, label smoothing s and log-probabilities log p,
// the loss of a target t is
//   -(1 - s) w[t] log p[t] - s / V * (sum over classes c of w[c] log p[c]),
// and the mean of a batch is the sum over its targets divided by the sum of w[t].
#pragma once

#include <vector>

#include "run_config/config.h"

namespace motley {

struct LossOptions {
  double label_smoothing = 0;        // s, in [0, 1)
  std::vector<float> class_weights;  // [class]: w; empty = all are 1

  [[nodiscard]] bool are_plain() const { return label_smoothing == 0 && class_weights.empty(); }
};

[[nodiscard]] inline LossOptions loss_options(const TrainConfig& train) {
  return {train.label_smoothing, {train.class_weights.begin(), train.class_weights.end()}};
}

}  // namespace motley
