#include "training/boundary_tensors.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/host_floats.h"
#include "models/layers/failure_of.h"

namespace motley {
namespace {

// The tensor that owns `made`. REQUIRES: from_layers() returned it.
const at::Tensor& tensor_of(const OwnedFloats& made) {
  return *static_cast<const at::Tensor*>(made.owner.get());
}

// The `arrive` function of OwnedValues.
std::function<Result<void>(const std::string& words)> arrival_of(
    const DeviceCopies::Download& download) {
  return [download](const std::string& words) -> Result<void> {
    // Runs on any thread; callers do not expect LibTorch's exceptions.
    try {
      download.wait();
    } catch (const std::exception& thrown) {
      return failure_of(thrown, words);
    }
    return {};
  };
}

}  // namespace

BoundaryTensors::BoundaryTensors(const ComputeDevice& device) {
  if (!device.is_host()) copies_ = std::make_unique<DeviceCopies>(device);
}

at::Tensor BoundaryTensors::room(const std::vector<std::int64_t>& sizes, at::ScalarType type) {
  return on_host() ? at::empty(sizes, type) : copies_->staging(sizes, type);
}

at::Tensor BoundaryTensors::room_with(std::span<const std::int32_t> words,
                                      const TensorSpec& spec,
                                      std::int64_t samples) {
  if (spec.type == NumberType::kFloat32) {
    at::Tensor floats = room(spec.sizes(samples));
    std::memcpy(floats.data_ptr<float>(), words.data(), words.size_bytes());
    return floats;
  }
  at::Tensor integers = room(spec.sizes(samples), at::kLong);
  std::ranges::copy(words, integers.data_ptr<std::int64_t>());
  return integers;
}

const DeviceFormat* BoundaryTensors::format_of(const std::string& codec) const {
  return on_host() ? nullptr : find_device_format(codec, copies_->device());
}

Arrival BoundaryTensors::message_room(const DeviceFormat& format,
                                      std::size_t bytes,
                                      std::vector<std::int64_t> sizes) {
  return {copies_->staging({static_cast<std::int64_t>(bytes)}, at::kByte), &format,
          std::move(sizes)};
}

at::Tensor BoundaryTensors::to_layers(Arrival arrival) {
  // Output of this rank's other layers is already on the device.
  if (on_host() || !arrival.tensor.is_cpu()) return std::move(arrival.tensor);
  if (arrival.format == nullptr) return copies_->upload(std::move(arrival.tensor));
  return copies_->upload(std::move(arrival.tensor), [&](const at::Tensor& bytes) {
    return arrival.format->decode(bytes, c10::multiply_integers(arrival.sizes)).view(arrival.sizes);
  });
}

OwnedFloats BoundaryTensors::from_layers(at::Tensor tensor) const {
  if (!tensor.defined()) return {};
  const std::span<float> floats = floats_of(tensor);
  return {floats, std::make_shared<const at::Tensor>(std::move(tensor)), {}};
}

OwnedFloats BoundaryTensors::to_host(OwnedFloats made) {
  if (on_host()) return made;
  const DeviceCopies::Download download = copies_->download(tensor_of(made));
  return {floats_of(download.host), std::make_shared<const at::Tensor>(download.host),
          arrival_of(download)};
}

OwnedBytes BoundaryTensors::to_host(const OwnedFloats& made, const DeviceFormat& format) {
  const DeviceCopies::Download download = copies_->download(tensor_of(made), format.encode);
  return {bytes_of(download.host), std::make_shared<const at::Tensor>(download.host),
          arrival_of(download)};
}

at::Tensor BoundaryTensors::hand_over(OwnedFloats made,
                                      const std::vector<std::int64_t>& sizes) const {
  if (!on_host()) return tensor_of(made).view(sizes);
  MOTLEY_CHECK(static_cast<std::int64_t>(made.values.size()) == c10::multiply_integers(sizes),
               "{} floats cross a boundary of {}", made.values.size(),
               c10::multiply_integers(sizes));
  // Shares the memory and holds a reference to its owner.
  float* const first = made.values.data();
  return at::from_blob(
      first, sizes, [owner = std::move(made.owner)](void* /*first*/) {}, at::kFloat);
}

}  // namespace motley
