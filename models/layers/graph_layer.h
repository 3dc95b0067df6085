// The layers of a package: their graphs behind the interfaces of models/layers/layer.h.
//
// What crosses a boundary is one tensor (models/layers/boundary_layout.h). `parameters` are the
// layer's parameters and, behind them, its statistics, both in the order of the package. What a
// micro-batch observed of a statistic is added into the statistic's place among the gradients by
// the input part of its backward, so that a forward that is repeated does not count twice.
//
// A graph that cannot run (shapes that do not fit, memory that is not there) throws GraphFailure.
#pragma once

#include <memory>

#include "models/graph/graph_failure.h"
#include "models/graph/prepared_package.h"
#include "models/layers/layer.h"

namespace motley {

// REQUIRES: `index` is a layer of the package that was prepared, and not the last.
[[nodiscard]] std::unique_ptr<Layer> make_graph_layer(std::shared_ptr<PreparedPackage> package,
                                                      int index,
                                                      LayerParameters parameters);
// REQUIRES: `index` is the last layer.
[[nodiscard]] std::unique_ptr<LossLayer> make_graph_loss_layer(
    std::shared_ptr<PreparedPackage> package, int index, LayerParameters parameters);

}  // namespace motley
