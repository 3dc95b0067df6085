// FusedAdamw: a step of AdamW in one operation of LibTorch (2.4 and later) for all parameters,
// where the device has it: one pass over values, gradients and moments instead of ten.
//
// The same formulas as Optimizer's and the same factors, but its own roundings: values and moments
// are near Optimizer's and not equal to them (docs/numerics.md).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "job/config.h"
#include "models/device/device_operation.h"
#include "training/optimizer/optimizer.h"

namespace motley {

// What a step takes of a parameter, all of one size.
struct TrainedArrays {
  at::Tensor values;
  at::Tensor gradients;
  std::vector<at::Tensor> moments;
};

class FusedAdamw {
 public:
  // Nothing where this LibTorch has no such operation for the device, or train another optimizer.
  [[nodiscard]] static std::optional<FusedAdamw> find(const TrainConfig& train, c10::Device device);

  // Leaves scaled gradients. REQUIRES: arrays on the device, with two moments.
  void update(std::span<const TrainedArrays> parameters, const UpdateArguments& arguments) const;

 private:
  FusedAdamw(const TrainConfig& train, const DeviceOperation& operation, c10::Device device);

  const TrainConfig train_;
  const DeviceOperation operation_;
  const at::Tensor steps_;
};

}  // namespace motley
