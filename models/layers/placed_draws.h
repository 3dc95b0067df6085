// PlacedDraws: the random numbers of a package's layer in one micro-batch, as a function of their
// position and never of earlier draws.
//
// Dropout masks depend on the step, the micro-batch and the position in it (dropout.h). Drawn
// numbers depend on the step and on their sample's position in it, so they do not change with the
// micro-batch size. If the shape has no batch dimension, they depend only on the step. In
// evaluation the step is 0, which no training step has, and the position is the sample's among the
// held-out samples.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph/graph_draws.h"
#include "models/layers/layer.h"

namespace motley {

class PlacedDraws final : public GraphDraws {
 public:
  // `layer`: index in the model; `samples`: of the micro-batch. REQUIRES: samples >= 1.
  PlacedDraws(const MicroContext& micro, int layer, std::int64_t samples);

  void mask(at::Tensor& ones, double p, int index) const override;
  [[nodiscard]] at::Tensor numbers(const DrawnNumbers& drawn,
                                   const std::vector<std::int64_t>& sizes,
                                   c10::Device device) const override;

 private:
  MicroContext micro_;
  int layer_;
  std::uint64_t batches_before_;  // the number of preceding micro-batches of this size
};

}  // namespace motley
