// BoundaryTensors: how tensors come to a rank's layers from the data and from other ranks, and how
// they leave. On the host they are handed over as they lie. To a device they are uploaded when
// their user runs, and what leaves it comes to the host beside the computing, as values or as the
// messages that these become; nothing here waits for it. Used by the compute thread alone.
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

// What waits for the layers: their tensor, or a message that a device makes it of.
struct Arrival {
  at::Tensor tensor;                     // or the message's bytes
  const DeviceFormat* format = nullptr;  // of the message
  BoundaryLayout layout;                 // of what it means
};

class BoundaryTensors {
 public:
  explicit BoundaryTensors(const ComputeDevice& device);

  [[nodiscard]] bool on_host() const { return copies_ == nullptr; }

  // REQUIRES: !on_host().
  [[nodiscard]] DeviceCopies& copies() { return *copies_; }

  // Memory of the host for what the layers are to read.
  [[nodiscard]] at::Tensor room(const std::vector<std::int64_t>& sizes, at::ScalarType type);
  // Its parts. REQUIRES: it is of this layout.
  [[nodiscard]] static BoundaryRoom parts_of(const at::Tensor& room, const BoundaryLayout& layout);
  // What a source gave, in such memory: integers, or floats by their bits.
  [[nodiscard]] at::Tensor room_with(std::span<const std::int32_t> words,
                                     const TensorSpec& spec,
                                     std::int64_t samples);
  // The codec where this device has it (training/device_formats.h).
  [[nodiscard]] const DeviceFormat* format_of(const std::string& codec) const;
  // Memory of the host for a message of so many bytes, which means values of this layout.
  [[nodiscard]] Arrival message_room(const DeviceFormat& format,
                                     std::size_t bytes,
                                     BoundaryLayout layout);
  // Where the layers read it.
  [[nodiscard]] at::Tensor to_layers(Arrival arrival);

  // What a forward or backward returns, which begins with so many floats; of an undefined tensor
  // nothing.
  [[nodiscard]] OwnedBoundary from_layers(at::Tensor tensor, std::int64_t floats) const;
  // The same where the host can read it, once it has arrived.
  [[nodiscard]] OwnedBoundary to_host(OwnedBoundary made);
  // The same as a message.
  [[nodiscard]] OwnedBytes to_host(const OwnedBoundary& made, const DeviceFormat& format);
  // The same for other layers of this rank.
  [[nodiscard]] at::Tensor hand_over(OwnedBoundary made, const BoundaryLayout& layout) const;

 private:
  std::unique_ptr<DeviceCopies> copies_;  // null where the device is the host
};

}  // namespace motley
