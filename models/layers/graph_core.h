// GraphCore: the common part of the two kinds of layers of a package (models/layers/graph_layer.h).
// Private to models/layers.
//
// The saved tensors of a micro-batch begin with its position. From forward to the input part of
// backward the saved values and the observed statistics follow; from there to the weight part, the
// saved values and the tensors that the input part queued. A saved value that is not needed any
// more is an undefined tensor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/graph/prepared_package.h"
#include "models/layers/layer.h"
#include "models/package/package.h"

namespace motley {

// Inputs or results of a graph, by role.
class GraphRoles {
 public:
  std::vector<at::Tensor>& operator[](Role role) {
    return tensors_[static_cast<std::size_t>(role)];
  }

  [[nodiscard]] const at::Tensor& get(RoleIndex role) const;
  void put(RoleIndex role, at::Tensor tensor);

 private:
  std::array<std::vector<at::Tensor>, kRoles> tensors_;
};

class GraphCore {
 public:
  GraphCore(std::shared_ptr<PreparedPackage> prepared, int index, LayerParameters parameters);

  [[nodiscard]] const PackageLayer& layer() const { return layer_; }

  [[nodiscard]] std::int64_t samples_of(const at::Tensor& x) const;

  // Runs forward or evaluation and returns its results. Fills `saved` in training. `targets` may be
  // undefined.
  [[nodiscard]] GraphRoles forward(at::Tensor x,
                                   const at::Tensor& targets,
                                   const MicroContext& micro,
                                   SavedTensors& saved);
  // The model's output before its loss. REQUIRES: the last layer.
  [[nodiscard]] at::Tensor score(at::Tensor x);

  // grad_output: undefined in the last layer. Returns the gradient of the input, undefined in the
  // first layer.
  [[nodiscard]] at::Tensor backward_input(at::Tensor grad_output, SavedTensors& saved);
  void backward_weight(SavedTensors& saved);

  // Packs the outputs of forward or evaluation for the next layer. May share their memory.
  [[nodiscard]] at::Tensor pack_outputs(const std::vector<at::Tensor>& outputs,
                                        std::int64_t samples) const;
  // A gradient of the input whose elements are all 0.
  [[nodiscard]] at::Tensor zero_gradient(std::int64_t samples) const;

  [[noreturn]] void fail(std::string cause) const;

 private:
  // Whether x is the data's only input as it is. Other inputs are packed as boundary tensors.
  [[nodiscard]] bool takes_plain_data() const { return index_ == 0 && inputs_.size() == 1; }

  // Parameters, constants and statistics.
  [[nodiscard]] GraphRoles persistent_roles() const;
  [[nodiscard]] GraphRoles inputs(const at::Tensor& x, std::int64_t samples) const;
  [[nodiscard]] GraphRoles run(GraphRunner& runner,
                               GraphRoles roles,
                               std::int64_t samples,
                               const MicroContext& micro);

  // Packs the gradients that the graph returned for the input's tensors.
  [[nodiscard]] at::Tensor pack_input_gradients(std::vector<at::Tensor> given,
                                                std::int64_t samples) const;

  // Fails unless the tensor has these sizes and this type.
  void check(const at::Tensor& tensor,
             at::IntArrayRef sizes,
             const char* what,
             at::ScalarType type = at::kFloat) const;
  void add(std::size_t place, const at::Tensor& term, const char* what);
  // Removes the observed statistics, which follow the saved values, and adds them to the gradients.
  void add_observed(SavedTensors& saved);
  void add_gradients(const GraphRunner& part, GraphRoles& given);

  std::shared_ptr<PreparedPackage> prepared_;  // owns what the next two refer to
  int index_;
  const PackageLayer& layer_;
  PreparedPackage::LayerRunners& runners_;
  std::vector<BoundarySpec> inputs_;  // of one sample
  c10::Device device_;
  std::vector<at::Tensor> constants_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> statistics_;
  std::vector<at::Tensor> gradients_;  // of the parameters, then the sums of observed statistics
  std::vector<bool> parts_take_;       // [saved]: a part of backward takes it
  std::vector<bool> weights_take_;     // [saved]: the weight part takes it
};

}  // namespace motley
