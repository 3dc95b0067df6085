// ParameterMemory: the values and gradients of the parameters of a run of layers, in two flat fp32
// arenas of equal layout on one device. If products are computed in bf16 or fp16, a third arena
// holds the rounded values, which round_values() updates.
//
// Each parameter begins at a multiple of kAlignment floats (64 bytes), so that its alignment does
// not depend on the other parameters; the gaps remain 0. Parameters follow in the order of the
// layers, and in a layer in the order of its spec, except that a parameter tied across the model
// comes first, and its other use last. A tied use has a place of its own: the code that steps the
// optimizer adds the gradients of all uses and writes the new values to each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "models/layers/layer.h"

namespace motley {

class ParameterMemory {
 public:
  static constexpr std::size_t kAlignment = 16;  // floats

  struct Parameter {
    ParameterSpec spec;
    int layer = 0;            // in the model's chain
    at::Tensor value_tensor;  // views into the arenas
    at::Tensor gradient_tensor;
    at::Tensor rounded_tensor;  // value_tensor itself if products are fp32
    std::span<float> values;    // the same on the host, empty on other devices
    std::span<float> gradients;
  };

  // The parameters of layers [first, last), all 0. `rounded`: the dtype of products. REQUIRES: 0 <=
  // first < last <= layers.
  ParameterMemory(const ModelSpec& spec,
                  int first,
                  int last,
                  c10::Device device,
                  at::ScalarType rounded = at::kFloat);

  // In the order of the layers, and in a layer in the order of its spec.
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

  // The parameters of one layer, by its index in the model. REQUIRES: first <= layer < last.
  [[nodiscard]] LayerParameters of_layer(int layer) const;

  // The offset of the nth layer in the arenas.
  [[nodiscard]] std::size_t offset(std::size_t nth) const { return offsets_[nth]; }

  // The whole arenas.
  [[nodiscard]] const at::Tensor& values_tensor() const { return values_; }

  [[nodiscard]] const at::Tensor& gradients_tensor() const { return gradients_; }

  // The same on the host, empty on other devices.
  [[nodiscard]] std::span<float> values() const;
  [[nodiscard]] std::span<float> gradients() const;

  // Sets every parameter to its initial values, by name; computed on the host.
  void initialize(std::int64_t seed);

  // Updates the rounded values.
  void round_values();

 private:
  at::Tensor values_;
  at::Tensor rounded_;  // values_ if products are fp32
  at::Tensor gradients_;
  std::vector<Parameter> parameters_;
  std::vector<std::size_t> offsets_;  // [layer - first]
};

}  // namespace motley
