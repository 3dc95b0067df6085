// What an optimizer's step takes of a parameter that lies on a device.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace motley {

// All of one size.
struct TrainedArrays {
  at::Tensor values;
  at::Tensor gradients;
  std::vector<at::Tensor> moments;
};

}  // namespace motley
