// DeviceOptimizer: Optimizer's steps in ATen operations, for values that lie on a device.
//
// The same formulas in the same order with each product and sum rounded by itself: where the
// device's quotients and square roots are IEEE's too, the bits are those of Optimizer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "job/config.h"
#include "training/optimizer/optimizer.h"

namespace motley {

class DeviceOptimizer {
 public:
  // REQUIRES: a validated configuration.
  explicit DeviceOptimizer(const TrainConfig& train);

  // As Optimizer::moment_names().
  [[nodiscard]] const std::vector<std::string>& moment_names() const { return moment_names_; }

  // As Optimizer::update. REQUIRES: all of one size, on one device.
  void update(at::Tensor values,
              const at::Tensor& gradients,
              std::span<at::Tensor> moments,
              const UpdateArguments& arguments) const;

 private:
  void adamw(at::Tensor& values,
             at::Tensor gradients,
             std::span<at::Tensor> moments,
             const UpdateArguments& arguments) const;
  void sgd(at::Tensor& values,
           at::Tensor gradients,
           std::span<at::Tensor> moments,
           const UpdateArguments& arguments) const;

  const TrainConfig train_;
  const std::vector<std::string> moment_names_;
};

}  // namespace motley
