// Sums of slices, in binary32 and value by value, so that every kernel gives the same bits.
#pragma once

#include <span>

namespace motley {

// All spans of a call have one size.
struct SumKernels {
  // sum_N += values_N.
  void (*add)(std::span<const float> values_N, std::span<float> sum_N);
  // Leaves what a sender has still to send: rest_N -= sent_N. Where that is not finite it becomes
  // 0: a residual that held an infinity or a NaN would spoil every later message.
  void (*subtract_sent)(std::span<const float> sent_N, std::span<float> rest_N);
};

[[nodiscard]] const SumKernels& scalar_sum_kernels();

// The fastest that this processor has.
[[nodiscard]] const SumKernels& best_sum_kernels();

}  // namespace motley
