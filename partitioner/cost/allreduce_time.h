// AllreduceTime: the duration of an all-reduce, and the part of it after the backward.
//
// Gradients become final layer by layer in a chunk's last backward, and the all-reduce follows.
// Here, and in a simulated step, it proceeds in a few equal pieces (ModelSizes::allreduce_pieces);
// the last one begins when all gradients are final.
#pragma once

#include <algorithm>

namespace motley {

struct AllreduceTime {
  double first_busy_s = 0;  // of links, for messages that depend on no other rank
  double all_s = 0;         // including that and all latencies

  // last_backward_s: without a second forward.
  [[nodiscard]] double left_s(double last_backward_s, int pieces) const {
    return all_s - (1 - 1.0 / pieces) * std::min(first_busy_s, last_backward_s);
  }
};

}  // namespace motley
