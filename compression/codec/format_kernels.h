// FormatKernels: the operations of a fixed-size format on whole slices. The wire side needs no
// alignment.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

// The wire side has exactly the bytes of a message of N values; any bytes decode to some values.
struct FormatKernels {
  void (*encode)(std::span<const float> values_N, std::byte* wire_B);
  void (*decode)(const std::byte* wire_B, std::span<float> values_N);

  // Adds the decoded values to sum_N.
  void (*decode_add)(const std::byte* wire_B, std::span<float> sum_N);

  // Error feedback: residual_N += gradient_N; encodes the residual; subtracts the decoded message
  // from it; residuals that are then not finite become 0. Each sum and each difference is rounded
  // once. REQUIRES: both spans have one size.
  void (*encode_feedback)(std::span<const float> gradient_N,
                          std::span<float> residual_N,
                          std::byte* wire_B);
};

}  // namespace motley
