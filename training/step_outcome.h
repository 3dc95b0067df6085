// What a batch comes to, on a rank and by the vote of all.
#pragma once

#include <cstdint>

namespace motley {

// What a rank's forwards of a batch come to.
struct BatchLoss {
  std::int64_t tokens = 0;  // 0 on ranks without the loss
  double sum = 0;           // over those tokens
};

// Of an evaluation only loss and tokens mean something.
struct StepOutcome {
  double loss = 0;  // mean over tokens
  std::int64_t tokens = 0;
  double grad_norm = 0;  // of the mean gradient, before clipping
  double lr = 0;
  bool skipped = false;
  bool ends = false;  // some rank was asked to end the session after this step
};

}  // namespace motley
