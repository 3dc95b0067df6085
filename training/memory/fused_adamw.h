// FusedAdamw: a step of AdamW for all parameters in one operation of LibTorch (2.4 and later), if
// the device has it: one pass over values, gradients and moments instead of ten.
//
// It uses Optimizer's formulas and factors but rounds differently: values and moments are close to
// Optimizer's, not bit-identical (docs/numerics.md).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/device/device_operation.h"
#include "models/spec/matrix_shape.h"
#include "run_config/config.h"
#include "training/optimizer/optimizer.h"

namespace motley {

// The arrays of one parameter that a step reads and writes, all of one size and flat.
struct TrainedArrays {
  at::Tensor values;
  at::Tensor gradients;
  std::vector<at::Tensor> moments;
  std::optional<MatrixShape> matrix = {};  // of one that Optimizer::matrices() updates
};

class FusedAdamw {
 public:
  // nullopt if this LibTorch has no such operation for the device, or `train` selects an optimizer
  // without AdamW.
  [[nodiscard]] static std::optional<FusedAdamw> find(const TrainConfig& train, c10::Device device);

  // Overwrites gradients with scaled ones. REQUIRES: arrays on the device, with AdamW's two
  // moments.
  void update(std::span<const TrainedArrays> parameters, const UpdateArguments& arguments) const;

 private:
  FusedAdamw(const TrainConfig& train, const DeviceOperation& operation, c10::Device device);

  const TrainConfig train_;
  const DeviceOperation operation_;
  const at::Tensor steps_;
};

}  // namespace motley
