// FormatKernels are what a format of fixed size does with whole slices. A slice's wire side needs
// no alignment.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

// The wire side has exactly the bytes of a message of N values; any bytes decode to some values.
struct FormatKernels {
  void (*encode)(std::span<const float> values_N, std::byte* wire_B);
  void (*decode)(const std::byte* wire_B, std::span<float> values_N);

  // Adds what decode() would write to sum_N.
  void (*decode_add)(const std::byte* wire_B, std::span<float> sum_N);

  // Error feedback: residual_N += gradient_N; encodes the residual; takes from it what the message
  // means, and makes 0 of what is then not finite. Each sum and each difference is rounded once.
  // REQUIRES: both spans of one size.
  void (*encode_feedback)(std::span<const float> gradient_N,
                          std::span<float> residual_N,
                          std::byte* wire_B);
};

}  // namespace motley
