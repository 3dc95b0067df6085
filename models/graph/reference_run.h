// ReferenceRun: runs the layer of a reference by its graphs on a device, as training and evaluation
// do, on the inputs, parameters and dropout masks that the reference defines. Private to
// models/graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "base/result.h"
#include "models/graph/prepared_package.h"
#include "models/package/reference/reference.h"

namespace motley {

// Inputs or results of graphs, by role and index.
using RoleTensors = std::map<std::pair<Role, int>, at::Tensor>;

enum class PartName { kForward, kInputPart, kWeightPart, kEvaluate, kScore };

// "forward", "input part of backward", …
[[nodiscard]] const char* part_words(PartName part);

class ReferenceRun {
 public:
  // Called after each node of each part, with all values of its graph that exist then.
  using Observer =
      std::function<void(PartName part, std::size_t node, const std::vector<at::Tensor>& values)>;

  // kConfig if this LibTorch lacks an operation, kCorrupt if weights cannot be read. `package` and
  // `reference` must outlive it.
  [[nodiscard]] static Result<ReferenceRun> make(std::shared_ptr<const Package> package,
                                                 const LayerReference& reference,
                                                 c10::Device device,
                                                 at::ScalarType products);

  // The results of forward and backward. kConfig if a kernel refuses its arguments.
  [[nodiscard]] Result<RoleTensors> training(const Observer& observer = {});
  // The results of evaluation, and the scores of the last layer.
  [[nodiscard]] Result<RoleTensors> evaluation(const Observer& observer = {});

  [[nodiscard]] const Graph& graph(PartName part);

 private:
  ReferenceRun(std::shared_ptr<PreparedPackage> prepared,
               const LayerReference& reference,
               c10::Device device);

  [[nodiscard]] Result<void> read_weights();
  [[nodiscard]] GraphRunner& runner(PartName part);
  // `roles`: the graph's inputs besides parameters, statistics and constants.
  [[nodiscard]] Result<RoleTensors> run(PartName part,
                                        const RoleTensors& roles,
                                        const Observer& observer);
  [[nodiscard]] RoleTensors inputs() const;

  std::shared_ptr<PreparedPackage> prepared_;
  const LayerReference& reference_;
  const PackageLayer& layer_;
  c10::Device device_;
  RoleTensors persistent_;
};

}  // namespace motley
