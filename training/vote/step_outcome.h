// What a batch comes to, on a rank and by the vote of all.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace motley {

// What a rank's forwards of a batch come to.
struct BatchLoss {
  // Of the loss's terms, or the sum of their weights; 0 on ranks without the loss.
  double count = 0;
  double sum = 0;                 // over those terms
  std::optional<double> correct;  // of the count, what was predicted right, where counted
};

// Of an evaluation only loss, count and accuracy mean something.
struct StepOutcome {
  double loss = 0;  // mean over the terms; NaN where there are none
  double count = 0;
  std::optional<double> accuracy;  // the share of the count predicted right, where counted
  double grad_norm = 0;            // of the mean gradient, before clipping
  double lr = 0;
  bool skipped = false;                  // the gradient was not finite
  std::optional<double> gradient_scale;  // that the step was computed with, in fp16
  bool ends = false;                     // some rank was asked to end the session after this step
  bool saves = false;                    // by rank 0's clock a checkpoint is due after this step
};

// A count as reports have it: a whole number, and 0 for none alone.
[[nodiscard]] inline std::int64_t reported_count(double count) {
  return static_cast<std::int64_t>(count > 0 && count < 1 ? 1 : std::llround(count));
}

}  // namespace motley
