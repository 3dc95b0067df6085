// ResidentState: the state of a process between steps besides parameters and gradients.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

struct ResidentState {
  int moments_per_parameter = 0;  // floats of the optimizer (training/optimizer/optimizer.h)
  std::int64_t data_bytes = 0;    // resident data, with the first layer (data/resident_bytes.h)
  // For each value that a rank encodes for an all-reduce between machines, one float each
  // (compression/feedback/gradient_compressor.h):
  bool has_residual = true;  // the error-feedback residual of a lossy codec
  bool velocity = false;     // with topk: the senders' momentum
};

// Floats of state for each encoded value. An unknown chain counts as lossy.
[[nodiscard]] int feedback_per_encoded(const ResidentState& process_state,
                                       const std::string& gradient_codec);

}  // namespace motley
