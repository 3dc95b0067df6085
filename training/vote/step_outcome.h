// What a batch comes to, on a rank and by the vote of all.
#pragma once

#include <cstdint>
#include <optional>

namespace motley {

// What a rank's forwards of a batch come to.
struct BatchLoss {
  std::int64_t tokens = 0;              // 0 on ranks without the loss
  double sum = 0;                       // over those tokens
  std::optional<std::int64_t> correct;  // how many of them were predicted right, where counted
};

// Of an evaluation only loss, tokens and accuracy mean something.
struct StepOutcome {
  double loss = 0;  // mean over tokens; NaN where there are none
  std::int64_t tokens = 0;
  std::optional<double> accuracy;  // the share of the tokens predicted right, where counted
  double grad_norm = 0;            // of the mean gradient, before clipping
  double lr = 0;
  bool skipped = false;                  // the gradient was not finite
  std::optional<double> gradient_scale;  // that the step was computed with, in fp16
  bool ends = false;                     // some rank was asked to end the session after this step
  bool saves = false;                    // by rank 0's clock a checkpoint is due after this step
};

}  // namespace motley
