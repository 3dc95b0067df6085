// BoundaryTensors: moves tensors from the data source and other ranks to a rank's layers, and from
// the layers to the host. On the host they are passed without a copy. For a device, inputs are
// uploaded when the layers run. Outputs are downloaded asynchronously, as values or as encoded
// messages; nothing here waits for a download. Used by the compute thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/device/compute_device.h"
#include "models/device/device_copies.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/stage_compute.h"
#include "training/device_formats.h"

namespace motley {

// An input of the layers: a tensor, or a message that the device decodes into one.
struct Arrival {
  at::Tensor tensor;                     // or the message's bytes
  const DeviceFormat* format = nullptr;  // of the message; nullptr for a tensor
  std::vector<std::int64_t> sizes;       // of the decoded tensor
};

class BoundaryTensors {
 public:
  explicit BoundaryTensors(const ComputeDevice& device);

  [[nodiscard]] bool on_host() const { return copies_ == nullptr; }

  // REQUIRES: !on_host().
  [[nodiscard]] DeviceCopies& copies() { return *copies_; }

  // Host memory for an input of the layers.
  [[nodiscard]] at::Tensor room(const std::vector<std::int64_t>& sizes,
                                at::ScalarType type = at::kFloat);
  // Copies what a source produced to such memory: integers, or the bit patterns of floats.
  [[nodiscard]] at::Tensor room_with(std::span<const std::int32_t> words,
                                     const TensorSpec& spec,
                                     std::int64_t samples);
  // The codec's implementation on this device (training/device_formats.h); nullptr if there is
  // none.
  [[nodiscard]] const DeviceFormat* format_of(const std::string& codec) const;
  // Host memory for a message of `bytes` bytes that decodes to a tensor of these sizes.
  [[nodiscard]] Arrival message_room(const DeviceFormat& format,
                                     std::size_t bytes,
                                     std::vector<std::int64_t> sizes);
  // The tensor in the layers' memory.
  [[nodiscard]] at::Tensor to_layers(Arrival arrival);

  // Wraps the result of a forward or backward; empty for an undefined tensor.
  [[nodiscard]] OwnedFloats from_layers(at::Tensor tensor) const;
  // The same in host memory, valid once the download has completed.
  [[nodiscard]] OwnedFloats to_host(OwnedFloats made);
  // The same, encoded as a message on the device.
  [[nodiscard]] OwnedBytes to_host(const OwnedFloats& made, const DeviceFormat& format);
  // The same as an input of this rank's next layers.
  [[nodiscard]] at::Tensor hand_over(OwnedFloats made,
                                     const std::vector<std::int64_t>& sizes) const;

 private:
  std::unique_ptr<DeviceCopies> copies_;  // nullptr if the layers run on the host
};

}  // namespace motley
