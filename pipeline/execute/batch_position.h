// The batch that a run of a schedule processes.
#pragma once

#include <cstdint>

namespace motley {

struct BatchPosition {
  std::int64_t step = 1;  // 1 is the first
  bool training = true;   // false: evaluation
  std::uint64_t first_sample =
      0;                      // of the global batch, in the source's training or held-out order
  double gradient_scale = 1;  // of gradients in fp16, a power of two
};

}  // namespace motley
