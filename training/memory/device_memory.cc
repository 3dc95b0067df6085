#include "training/memory/device_memory.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "base/hash.h"
#include "models/device/host_floats.h"

namespace motley {
DeviceMemory::DeviceMemory(std::vector<Parameter> parameters,
                           std::map<ChunkId, GradientMirror*> mirrors,
                           const TrainConfig& train,
                           DeviceCopies& copies,
                           InParts in_parts)
    : parameters_(std::move(parameters)),
      mirrors_(std::move(mirrors)),
      optimizer_(train, copies.device(), std::move(in_parts)),
      copies_(copies),
      moments_(parameters_.size()),
      averages_(parameters_.size()) {}

void DeviceMemory::make_moments(std::size_t parameter) {
  for (std::size_t k = 0; k < moment_names(parameter).size(); ++k) {
    moments_[parameter].push_back(at::zeros_like(parameters_[parameter].values));
  }
}

void DeviceMemory::make_average(std::size_t parameter) {
  averages_[parameter] = at::zeros_like(parameters_[parameter].values);
}

at::Tensor DeviceMemory::array(const StateArray& array) {
  switch (array.kind) {
    case StateArray::Kind::kValues:
      return parameters_[array.parameter].values;
    case StateArray::Kind::kGradients:
      return parameters_[array.parameter].gradients;
    case StateArray::Kind::kMoment:
      return moments_[array.parameter].at(array.moment);
    case StateArray::Kind::kAverage:
      return averages_[array.parameter];
  }
  return {};
}

at::Tensor DeviceMemory::on_host(const at::Tensor& tensor) {
  const DeviceCopies::Download download = copies_.download(tensor);
  download.wait();
  return download.host;
}

Result<void> DeviceMemory::fill(const StateArray& to, const Write& write) {
  at::Tensor device = array(to);
  at::Tensor host = copies_.staging(device.sizes());
  MOTLEY_TRY(write(floats_of(host)));
  copies_.upload(std::move(host), device);
  return {};
}

void DeviceMemory::add_to_gradient(std::size_t parameter, std::span<const float> terms) {
  at::Tensor host = copies_.staging({static_cast<std::int64_t>(terms.size())});
  std::ranges::copy(terms, floats_of(host).begin());
  parameters_[parameter].gradients.add_(copies_.upload(std::move(host)));
}

std::span<const float> DeviceMemory::view(const StateArray& of) {
  if (of.kind == StateArray::Kind::kGradients) {
    if (!parameters_[of.parameter].mirrored.empty()) return parameters_[of.parameter].mirrored;
    if (const auto lent = lent_.find(of.parameter); lent != lent_.end()) {
      return lent->second->host();
    }
  }
  return floats_of(viewed_.emplace_back(on_host(array(of))));
}

std::uint64_t DeviceMemory::hash_values(std::size_t parameter) {
  return hash64(std::as_bytes(floats_of(on_host(parameters_[parameter].values))));
}

std::span<float> DeviceMemory::reduced_gradients(ChunkId chunk) {
  const auto mirror = mirrors_.find(chunk);
  MOTLEY_CHECK(mirror != mirrors_.end(), "chunk {} is summed with no other rank", chunk.value);
  return mirror->second->host();
}

std::span<float> DeviceMemory::reduced_gradient(std::size_t parameter) {
  const std::span<float> mirrored = parameters_[parameter].mirrored;
  return mirrored.empty() ? staged_gradient(parameter) : mirrored;
}

std::span<float> DeviceMemory::staged_gradient(std::size_t parameter) {
  std::unique_ptr<GradientMirror>& lent = lent_[parameter];
  if (lent == nullptr) {
    lent = std::make_unique<GradientMirror>(parameters_[parameter].gradients, copies_);
  }
  return lent->host();
}

void DeviceMemory::stage_gradient(std::size_t parameter) {
  // If it was never lent, no other rank has a use of the parameter.
  if (const auto lent = lent_.find(parameter); lent != lent_.end()) lent->second->fetch_all();
}

std::vector<double> DeviceMemory::squared_norms(const std::vector<std::size_t>& parameters) {
  for (const auto& [chunk, mirror] : mirrors_) mirror->give_back();
  for (const auto& [parameter, mirror] : lent_) mirror->give_back();
  if (parameters.empty()) return {};
  std::vector<at::Tensor> norms;
  for (const std::size_t parameter : parameters) {
    const at::Tensor& gradients = parameters_[parameter].gradients;
    norms.push_back(at::linalg_vector_norm(gradients, 2, at::OptionalIntArrayRef(), false,
                                           exact_type(gradients.device())));
  }
  const at::Tensor host = on_host(at::stack(norms).square_()).to(at::kDouble);
  const double* const first = host.data_ptr<double>();
  return {first, first + parameters.size()};
}

void DeviceMemory::add_gradient(std::size_t from, std::size_t to) {
  parameters_[to].gradients.add_(parameters_[from].gradients);
}

void DeviceMemory::copy_values(std::size_t from, std::size_t to) {
  parameters_[to].values.copy_(parameters_[from].values);
}

void DeviceMemory::update(const std::vector<std::size_t>& parameters,
                          const UpdateArguments& arguments) {
  viewed_.clear();
  std::vector<TrainedArrays> alone;
  std::vector<TrainedArrays> copied;
  for (const std::size_t index : parameters) {
    const Parameter& parameter = parameters_[index];
    (parameter.has_copies ? copied : alone)
        .push_back({parameter.values, parameter.gradients, moments_[index], parameter.matrix});
  }
  optimizer_.update(alone, arguments, DeviceOptimizer::Rounding::kFast);
  optimizer_.update(copied, arguments, DeviceOptimizer::Rounding::kExact);
}

void DeviceMemory::average(const std::vector<std::size_t>& parameters, double decay) {
  const auto share = static_cast<float>(1 - decay);
  for (const std::size_t parameter : parameters) {
    averages_[parameter]
        .mul_(static_cast<float>(decay))
        .add_(parameters_[parameter].values * share);
  }
}

void DeviceMemory::move_statistic(std::size_t parameter, float share, float count) {
  auto& [values, gradients, mirrored, has_copies, matrix] = parameters_[parameter];
  const at::Tensor divisor = at::full({}, count, values.options());
  values.mul_(1 - share).add_((gradients / divisor).mul_(share));
}

void DeviceMemory::clear_gradients() {
  viewed_.clear();
  std::vector<at::Tensor> gradients;
  for (const Parameter& parameter : parameters_) gradients.push_back(parameter.gradients);
  at::_foreach_zero_(gradients);
  for (const auto& [chunk, mirror] : mirrors_) mirror->clear();
  for (const auto& [parameter, mirror] : lent_) mirror->clear();
}

}  // namespace motley
