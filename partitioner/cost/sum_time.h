// SumTime: how long a sum over ranks takes, and what of it is left when their backward is over.
//
// Gradients become final layer by layer in a chunk's last backward, and the sum follows. Here, and
// in a simulated step, it does so in a few equal pieces, the last of which goes when all is final.
#pragma once

#include <algorithm>

namespace motley {

// How finely what a rank sends before it needs anything of the others keeps up with its backward.
inline constexpr int kSumPieces = 4;

struct SumTime {
  double first_s = 0;  // of what each rank sends before it needs anything of the others
  double all_s = 0;    // with that

  // last_backward_s: without a second forward.
  [[nodiscard]] double left_s(double last_backward_s) const {
    return all_s - (1 - 1.0 / kSumPieces) * std::min(first_s, last_backward_s);
  }
};

}  // namespace motley
