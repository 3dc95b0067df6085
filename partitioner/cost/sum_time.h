// SumTime: how long a sum over ranks takes, and what of it is left when their backward is over.
//
// Gradients become final layer by layer in a chunk's last backward, and the sum follows. Here, and
// in a simulated step, it does so in a few equal pieces (ModelSizes::sum_pieces), the last of which
// goes when all is final.
#pragma once

#include <algorithm>

namespace motley {

struct SumTime {
  double first_busy_s = 0;  // of links, by what each rank sends before it needs any of the others
  double all_s = 0;         // with that and all latencies

  // last_backward_s: without a second forward.
  [[nodiscard]] double left_s(double last_backward_s, int pieces) const {
    return all_s - (1 - 1.0 / pieces) * std::min(first_busy_s, last_backward_s);
  }
};

}  // namespace motley
