// GraphDraws: the source of a graph's random numbers. In training they are a function of the
// micro-batch's position (models/layers/placed_draws.h); in a comparison with a reference, of the
// reference's seed.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/package/draws.h"

namespace motley {

class GraphDraws {
 public:
  virtual ~GraphDraws() = default;

  // Sets the elements of a tensor of ones to 0 with probability p, else to 1 / (1 - p). `index`:
  // the number of the mask in the layer. REQUIRES: 0 < p < 1.
  virtual void mask(at::Tensor& ones, double p, int index) const = 0;

  // Returns a contiguous tensor of these sizes on `device`: int64 for integers, else fp32.
  // REQUIRES: `sizes` is drawn.sizes_of() for the samples of the micro-batch.
  [[nodiscard]] virtual at::Tensor numbers(const DrawnNumbers& drawn,
                                           const std::vector<std::int64_t>& sizes,
                                           c10::Device device) const = 0;
};

}  // namespace motley
