// ReferenceRun: the layer of a reference, run by its graphs on a device as training and evaluation
// run them, on the inputs, parameters and dropout masks that the reference tells. Private to
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

// What graphs take or gave, by role and index.
using RoleTensors = std::map<std::pair<Role, int>, at::Tensor>;

enum class PartName { kForward, kInputPart, kWeightPart, kEvaluate, kScore };

// "forward", "input part of backward", …
[[nodiscard]] const char* part_words(PartName part);

class ReferenceRun {
 public:
  // Called after each node of each part, with all values of its graph that live then.
  using Observer =
      std::function<void(PartName part, std::size_t node, const std::vector<at::Tensor>& values)>;

  // kConfig when this LibTorch lacks an operation, kCorrupt when weights cannot be read. `package`
  // and `reference` outlive it.
  [[nodiscard]] static Result<ReferenceRun> make(std::shared_ptr<const Package> package,
                                                 const LayerReference& reference,
                                                 c10::Device device,
                                                 at::ScalarType products);

  // What forward and backward give. kConfig where a kernel refuses its arguments.
  [[nodiscard]] Result<RoleTensors> training(const Observer& observer = {});
  // What evaluation gives, and the scores of the last layer.
  [[nodiscard]] Result<RoleTensors> evaluation(const Observer& observer = {});

  [[nodiscard]] const Graph& graph(PartName part);

 private:
  ReferenceRun(std::shared_ptr<PreparedPackage> prepared,
               const LayerReference& reference,
               c10::Device device);

  [[nodiscard]] Result<void> read_weights();
  [[nodiscard]] GraphRunner& runner(PartName part);
  // `roles` has what the graph takes besides parameters, statistics and constants.
  [[nodiscard]] Result<RoleTensors> run(PartName part,
                                        const RoleTensors& roles,
                                        const Observer& observer);
  [[nodiscard]] RoleTensors inputs() const;

  std::shared_ptr<PreparedPackage> prepared_;
  const LayerReference& reference_;
  const PackageLayer& layer_;
  c10::Device device_;
  RoleTensors lasting_;
};

}  // namespace motley
