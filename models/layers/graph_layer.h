// The layers of a package: their graphs behind the interfaces of models/layers/layer.h.
//
// The tensors of a boundary are packed into one (models/layers/boundary_layout.h). `parameters` are
// the layer's parameters followed by its statistics, both in the order of the package. The input
// part of backward adds a micro-batch's observed statistics to the statistics' slots among the
// gradients, so a forward that is recomputed does not count twice.
//
// A graph that cannot run (shapes that do not match, a lack of memory) throws GraphFailure.
#pragma once

#include <memory>

#include "models/graph/graph_failure.h"
#include "models/graph/prepared_package.h"
#include "models/layers/layer.h"

namespace motley {

// REQUIRES: `index` is a prepared layer of the package, and not the last.
[[nodiscard]] std::unique_ptr<Layer> make_graph_layer(std::shared_ptr<PreparedPackage> package,
                                                      int index,
                                                      LayerParameters parameters);
// REQUIRES: `index` is the last layer.
[[nodiscard]] std::unique_ptr<LossLayer> make_graph_loss_layer(
    std::shared_ptr<PreparedPackage> package, int index, LayerParameters parameters);

}  // namespace motley
