// How a machine's simulated devices compute in a job: their speed, and the dtype of their matrix
// products. Both depend on train.precision where the cluster file names a device model.
#pragma once

#include <string>

#include "plan/cluster.h"

namespace motley {

struct VirtualNumbers {
  VirtualSpeed speed;
  // "fp32" if the device model has no units for the precision.
  std::string compute_dtype;
  // Whether the values between two products of a layer are in that dtype too: on all devices but
  // processors (docs/numerics.md).
  bool rounds_intermediates = false;

  friend bool operator==(const VirtualNumbers&, const VirtualNumbers&) = default;
};

// `precision`: train.precision of the job. A speed in the cluster file is that of the job,
// whichever its precision. REQUIRES: the machine's devices are simulated.
[[nodiscard]] VirtualNumbers virtual_numbers(const Machine& machine, const std::string& precision);

// Of a value in the dtype of products.
[[nodiscard]] int product_bytes(const VirtualNumbers& numbers);

}  // namespace motley
