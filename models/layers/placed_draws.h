// PlacedDraws: the random numbers of a package's layer in one micro-batch, as a function of where
// it stands and never of history.
//
// Dropout masks depend on the step, the micro-batch and the place in it (dropout.h). Drawn numbers
// depend on the step and on the place of their sample in it, so that they do not change with the
// size of micro-batches; those of a shape without the batch on the step alone. In evaluation the
// step is 0, which no training step is, and the place that of the sample among the held-out ones.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph/graph_draws.h"
#include "models/layers/layer.h"

namespace motley {

class PlacedDraws final : public GraphDraws {
 public:
  // `layer`: in the model. REQUIRES: samples of the micro-batch >= 1.
  PlacedDraws(const MicroContext& micro, int layer, std::int64_t samples);

  void mask(at::Tensor& ones, double p, int index) const override;
  [[nodiscard]] at::Tensor numbers(const DrawnNumbers& drawn,
                                   const std::vector<std::int64_t>& sizes,
                                   c10::Device device) const override;

 private:
  MicroContext micro_;
  int layer_;
  std::uint64_t batches_before_;  // micro-batches of this size before this one
};

}  // namespace motley
