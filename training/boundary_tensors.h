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
#include "models/layers/boundary_layout.h"
#include "models/spec/sample_format.h"
#include "pipeline/execute/stage_compute.h"
#include "training/device_formats.h"

namespace motley {

// An input of the layers: a tensor, or a message that the device decodes to a tensor.
struct Arrival {
  at::Tensor tensor;                     // or the message's bytes
  const DeviceFormat* format = nullptr;  // of the message
  BoundaryLayout layout;                 // of the decoded tensor
};

class BoundaryTensors {
 public:
  explicit BoundaryTensors(const ComputeDevice& device);

  [[nodiscard]] bool on_host() const { return copies_ == nullptr; }

  // REQUIRES: !on_host().
  [[nodiscard]] DeviceCopies& copies() { return *copies_; }

  // A host buffer for an input of the layers.
  [[nodiscard]] at::Tensor receive_buffer(const std::vector<std::int64_t>& sizes,
                                          at::ScalarType type);
  // Views of the floats and exact bytes of such a buffer. REQUIRES: it has this layout.
  [[nodiscard]] static BoundaryBuffer parts_of(const at::Tensor& receive_buffer,
                                               const BoundaryLayout& layout);
  // A buffer with the words of a data source: integers, or the bits of floats.
  [[nodiscard]] at::Tensor buffer_with_values(std::span<const std::int32_t> words,
                                              const TensorSpec& spec,
                                              std::int64_t samples);
  // A buffer with the words of all inputs of each sample, as the first layer takes them: a single
  // input as above, several as packed boundary tensors without gradients.
  [[nodiscard]] at::Tensor buffer_with_values(std::span<const std::int32_t> words,
                                              const std::vector<SampleInput>& inputs,
                                              std::int64_t samples);
  // The codec's implementation on this device (training/device_formats.h); nullptr if there is
  // none.
  [[nodiscard]] const DeviceFormat* format_of(const std::string& codec) const;
  // A host buffer for a message of that many bytes, whose decoded values have this layout.
  [[nodiscard]] Arrival message_buffer(const DeviceFormat& format,
                                       std::size_t bytes,
                                       BoundaryLayout layout);
  // The input on the device of the layers.
  [[nodiscard]] at::Tensor to_layers(Arrival arrival);

  // Wraps the result of a forward or backward, which begins with that many floats. Empty for an
  // undefined tensor.
  [[nodiscard]] OwnedBoundary from_layers(at::Tensor tensor, std::int64_t floats) const;
  // The same in host memory, readable once it has arrived.
  [[nodiscard]] OwnedBoundary to_host(OwnedBoundary made);
  // The same as an encoded message.
  [[nodiscard]] OwnedBytes to_host(const OwnedBoundary& made, const DeviceFormat& format);
  // The same as an input of other layers of this rank.
  [[nodiscard]] at::Tensor hand_over(OwnedBoundary made, const BoundaryLayout& layout) const;

 private:
  std::unique_ptr<DeviceCopies> copies_;  // nullptr if the layers run on the host
};

}  // namespace motley
