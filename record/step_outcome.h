// StepOutcome: the result of a step, the same on every rank (training/vote/step_voter.h).
#pragma once

#include <cstdint>
#include <optional>

namespace motley {

struct StepOutcome {
  double loss = 0;          // mean over the tokens of the global batch, in nats; NaN without tokens
  std::int64_t tokens = 0;  // 0: the loss counted none, so the step changed nothing
  std::optional<double> accuracy;  // share of tokens predicted correctly, if counted
  double lr = 0;
  double grad_norm = 0;                  // of the mean gradient, before clipping
  bool skipped = false;                  // the gradient was not finite
  std::optional<double> gradient_scale;  // with which the step was computed, in fp16
};

}  // namespace motley
