// GraphDraws: where the random numbers of a graph come from. A worker that trains draws them as a
// function of the micro-batch's place (models/layers/placed_draws.h), a comparison with a reference
// as one of the reference's seed.
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
  // the place in the layer. REQUIRES: 0 < p < 1.
  virtual void mask(at::Tensor& ones, double p, int index) const = 0;

  // A contiguous tensor of these sizes on `device`: int64 of integers, else fp32. REQUIRES: sizes
  // are drawn.sizes_of() the samples of the micro-batch.
  [[nodiscard]] virtual at::Tensor numbers(const DrawnNumbers& drawn,
                                           const std::vector<std::int64_t>& sizes,
                                           c10::Device device) const = 0;
};

}  // namespace motley
