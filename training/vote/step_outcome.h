// The results of a batch: on one rank, and after the vote of all.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace motley {

// Result of a rank's forwards of a batch.
struct BatchLoss {
  // Number of the loss's terms, or the sum of their weights; 0 on ranks without the loss.
  double count = 0;
  double sum = 0;                 // over those terms
  std::optional<double> correct;  // the correct predictions among `count`, if counted
};

// In an evaluation only loss, count and accuracy are meaningful.
struct StepOutcome {
  double loss = 0;  // mean over the terms; NaN if there are none
  double count = 0;
  std::optional<double> accuracy;  // the share of correct predictions, if counted
  double grad_norm = 0;            // of the mean gradient, before clipping
  double lr = 0;
  bool skipped = false;                  // the gradient was not finite
  std::optional<double> gradient_scale;  // with which the step was computed, in fp16
  bool ends = false;                     // some rank was asked to end the session after this step
  bool saves = false;                    // a checkpoint is due after this step, by rank 0's clock
};

// A count for reports: rounded to a whole number, but 0 only for none.
[[nodiscard]] inline std::int64_t reported_count(double count) {
  return static_cast<std::int64_t>(count > 0 && count < 1 ? 1 : std::llround(count));
}

}  // namespace motley
