// DeviceOptimizer: Optimizer's steps in ATen operations, for values on a device.
//
// kExact: the same formulas in the same order, with each product and sum rounded separately. If the
// device's division and square root follow IEEE 754, results are bit-identical to Optimizer's, so
// copies on different kinds of devices stay equal. kFast: one fused operation if the device has it
// (FusedAdamw), otherwise as kExact.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "run_config/config.h"
#include "training/fused_adamw.h"
#include "training/optimizer/optimizer.h"

namespace motley {

class DeviceOptimizer {
 public:
  // REQUIRES: a validated configuration.
  DeviceOptimizer(const TrainConfig& train, c10::Device device);

  enum class Rounding { kExact, kFast };

  // As Optimizer::moment_names().
  [[nodiscard]] const std::vector<std::string>& moment_names() const { return moment_names_; }

  // As Optimizer::update for each of the parameters. May overwrite their gradients. REQUIRES:
  // arrays on the device.
  void update(std::span<const TrainedArrays> parameters,
              const UpdateArguments& arguments,
              Rounding rounding) const;

 private:
  void update_exactly(const TrainedArrays& parameter, const UpdateArguments& arguments) const;
  void adamw(const at::Tensor& values,
             at::Tensor gradients,
             const std::vector<at::Tensor>& moments,
             const UpdateArguments& arguments) const;
  void sgd(const at::Tensor& values,
           at::Tensor gradients,
           const at::Tensor& b,
           const UpdateArguments& arguments) const;

  const TrainConfig train_;
  const std::vector<std::string> moment_names_;
  const std::optional<FusedAdamw> fused_;
};

}  // namespace motley
