// KeptState: the state of a process between steps besides parameters and gradients.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

struct KeptState {
  int moments_per_parameter = 0;  // floats of the optimizer (training/optimizer/optimizer.h)
  std::int64_t data_bytes = 0;    // resident data, with the first layer (data/held_bytes.h)
  // For each value that a rank encodes for an all-reduce between machines, one float each
  // (compression/feedback/gradient_compressor.h):
  bool unsent = true;     // the error-feedback residual of a lossy codec
  bool velocity = false;  // with topk: the senders' momentum
};

// Floats of state for each encoded value. An unknown chain counts as lossy.
[[nodiscard]] int kept_per_encoded(const KeptState& kept, const std::string& gradient_codec);

}  // namespace motley
