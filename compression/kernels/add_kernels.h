// Sums of slices, in binary32 and value by value, so that every kernel returns the same bits.
#pragma once

#include <span>

namespace motley {

// All spans of a call have one size.
struct AddKernels {
  // sum_N += values_N.
  void (*add)(std::span<const float> values_N, std::span<float> sum_N);
  // Subtracts the sent values from a residual: rest_N -= sent_N. Results that are not finite become
  // 0: an infinity or a NaN in a residual would spoil every later message.
  void (*subtract_sent)(std::span<const float> sent_N, std::span<float> rest_N);
};

[[nodiscard]] const AddKernels& scalar_add_kernels();

// The fastest kernels that this processor supports.
[[nodiscard]] const AddKernels& best_add_kernels();

}  // namespace motley
