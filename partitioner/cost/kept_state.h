// KeptState: what processes keep from step to step beside parameters and gradients.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

struct KeptState {
  int moments_per_parameter = 0;  // floats of the optimizer (training/optimizer/optimizer.h)
  std::int64_t data_bytes = 0;    // of the data, where the first layer is (data/held_bytes.h)
  // Of each value that a rank encodes for a sum between machines, one float each
  // (compression/feedback/gradient_compressor.h):
  bool unsent = true;     // what a lossy message left out
  bool velocity = false;  // with topk, whose senders then apply the momentum
};

// Floats that a rank keeps for each value that it encodes. What is not a chain counts as lossy.
[[nodiscard]] int kept_per_encoded(const KeptState& kept, const std::string& gradient_codec);

}  // namespace motley
