// DeviceOptimizer: Optimizer's steps in ATen operations, for values on a device.
//
// kExact: the same formulas in the same order, with each product and sum rounded separately. If the
// device's division and square root follow IEEE 754, results are bit-identical to Optimizer's, so
// copies on different kinds of devices stay equal. Muon's matrices are then orthogonalized on the
// processor, since the device's products add in another order. kFast: one fused operation if the
// device has it (FusedAdamw), and the device's own matrix products; otherwise as kExact.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "run_config/config.h"
#include "training/memory/fused_adamw.h"
#include "training/optimizer/optimizer.h"
#include "training/optimizer/work_parts.h"

namespace motley {

class DeviceOptimizer {
 public:
  // `in_parts`: as in HostMemory, for work on the processor. REQUIRES: a validated configuration.
  DeviceOptimizer(const TrainConfig& train, c10::Device device, InParts in_parts = in_one_part);

  enum class Rounding { kExact, kFast };

  // As Optimizer::moment_names(), or Muon's of a matrix.
  [[nodiscard]] std::vector<std::string> moment_names(bool is_matrix) const;

  // As Optimizer::update, or Muon's of a matrix, for each of the parameters. May overwrite their
  // gradients. REQUIRES: arrays on the device.
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
  void lion(const at::Tensor& values,
            at::Tensor gradients,
            const at::Tensor& m,
            const UpdateArguments& arguments) const;
  void muon(const TrainedArrays& parameter,
            const UpdateArguments& arguments,
            Rounding rounding) const;

  const TrainConfig train_;
  const std::unique_ptr<const Optimizer> on_host_;
  const InParts in_parts_;
  const std::optional<FusedAdamw> fused_;
};

}  // namespace motley
