#include "models/layers/parameter_memory.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/host_floats.h"

namespace motley {
namespace {

std::int64_t aligned(std::int64_t count) {
  constexpr auto kAlignment = static_cast<std::int64_t>(ParameterMemory::kAlignment);
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

// A parameter that is tied across the model is first or last in its chain's memory, since the rest
// is all-reduced over replicas without it.
std::vector<std::size_t> memory_order(const ModelSpec& spec, int layer) {
  const std::vector<ParameterSpec>& parameters =
      spec.layers[static_cast<std::size_t>(layer)].parameters;
  const auto pair = spec.tied_pair();
  const auto rank = [&](std::size_t i) {
    if (!pair || parameters[i].name != pair->parameter) return 1;
    return parameters[i].tied_use ? 2 : 0;
  };
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

std::int64_t aligned_floats(const LayerSpec& layer) {
  std::int64_t size = 0;
  for (const ParameterSpec& parameter : layer.parameters) size += aligned(parameter.count());
  return size;
}

}  // namespace

ParameterMemory::ParameterMemory(
    const ModelSpec& spec, int first, int last, c10::Device device, at::ScalarType rounded) {
  const int total = static_cast<int>(spec.layers.size());
  MOTLEY_CHECK(0 <= first && first < last && last <= total, "layers [{}, {}) of {}", first, last,
               total);
  std::int64_t size = 0;
  for (int index = first; index < last; ++index) {
    size += aligned_floats(spec.layers[static_cast<std::size_t>(index)]);
  }
  const auto floats = at::device(device).dtype(at::kFloat);
  values_ = at::zeros({size}, floats);
  gradients_ = at::zeros({size}, floats);
  rounded_ = rounded == at::kFloat ? values_ : at::zeros({size}, floats.dtype(rounded));

  std::int64_t offset = 0;
  for (int index = first; index < last; ++index) {
    const std::vector<ParameterSpec>& specs =
        spec.layers[static_cast<std::size_t>(index)].parameters;
    const std::size_t before = parameters_.size();
    offsets_.push_back(static_cast<std::size_t>(offset));
    parameters_.resize(before + specs.size());
    for (const std::size_t place : memory_order(spec, index)) {
      const auto view = [&](const at::Tensor& arena) {
        return arena.narrow(0, offset, specs[place].count()).view(specs[place].shape);
      };
      const at::Tensor value = view(values_);
      const at::Tensor gradient = view(gradients_);
      parameters_[before + place] = {specs[place],       index,          value,
                                     gradient,           view(rounded_), floats_of(value),
                                     floats_of(gradient)};
      offset += aligned(specs[place].count());
    }
  }
}

LayerParameters ParameterMemory::of_layer(int layer) const {
  LayerParameters tensors;
  for (const Parameter& parameter : parameters_) {
    if (parameter.layer != layer) continue;
    tensors.values.push_back(parameter.value_tensor);
    tensors.gradients.push_back(parameter.gradient_tensor);
    tensors.rounded.push_back(parameter.rounded_tensor);
  }
  return tensors;
}

std::span<float> ParameterMemory::values() const {
  return floats_of(values_);
}

std::span<float> ParameterMemory::gradients() const {
  return floats_of(gradients_);
}

void ParameterMemory::initialize(std::int64_t seed) {
  for (const Parameter& parameter : parameters_) {
    if (!parameter.values.empty()) {
      initialize_parameter(parameter.spec, seed, parameter.values);
      continue;
    }
    const at::Tensor made = at::empty(parameter.spec.shape, at::kFloat);
    initialize_parameter(parameter.spec, seed, floats_of(made));
    parameter.value_tensor.copy_(made);
  }
  round_values();
}

void ParameterMemory::round_values() {
  if (!rounded_.is_same(values_)) rounded_.copy_(values_);
}

}  // namespace motley
