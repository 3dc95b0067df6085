#include "training/device_optimizer.h"

#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"

namespace motley {

DeviceOptimizer::DeviceOptimizer(const TrainConfig& train, c10::Device device)
    : train_(train),
      moment_names_(make_optimizer(train)->moment_names()),
      fused_(FusedAdamw::find(train, device)) {}

void DeviceOptimizer::update(std::span<const TrainedArrays> parameters,
                             const UpdateArguments& arguments,
                             Rounding rounding) const {
  if (parameters.empty()) return;
  if (rounding == Rounding::kFast && fused_) return fused_->update(parameters, arguments);
  for (const TrainedArrays& parameter : parameters) update_exactly(parameter, arguments);
}

void DeviceOptimizer::update_exactly(const TrainedArrays& parameter,
                                     const UpdateArguments& arguments) const {
  MOTLEY_CHECK(parameter.moments.size() == moment_names_.size(), "{} moments for {}",
               parameter.moments.size(), train_.optimizer);
  at::Tensor scaled = parameter.gradients * arguments.gradient_scale;
  switch (optimizer_of(train_).kind) {
    case OptimizerKind::kAdamw:
      return adamw(parameter.values, std::move(scaled), parameter.moments, arguments);
    case OptimizerKind::kSgd:
      return sgd(parameter.values, std::move(scaled), parameter.moments[0], arguments);
  }
  MOTLEY_CHECK(false, "train.optimizer '{}' is not computed on devices", train_.optimizer);
}

// Adds products that were computed separately: `add` with a factor may round once or twice.
void DeviceOptimizer::adamw(const at::Tensor& values,
                            at::Tensor gradients,
                            const std::vector<at::Tensor>& moments,
                            const UpdateArguments& arguments) const {
  const auto& [lr, corrections] = arguments.factors;
  const double decay = arguments.decayed ? train_.weight_decay : 0;
  const auto rest1 = static_cast<float>(1 - train_.beta1);
  const auto rest2 = static_cast<float>(1 - train_.beta2);
  const at::Tensor& m = moments[0];
  const at::Tensor& v = moments[1];
  m.mul_(static_cast<float>(train_.beta1)).add_(gradients * rest1);
  v.mul_(static_cast<float>(train_.beta2)).add_((gradients * rest2).mul_(gradients));
  // Division by a scalar may be implemented as multiplication by its inverse, so divide by a
  // tensor.
  const at::Tensor correction2_root =
      at::full({}, static_cast<float>(std::sqrt(corrections[1])), values.options());
  at::Tensor root = v.sqrt().div_(correction2_root).add_(static_cast<float>(train_.epsilon));
  at::Tensor change = std::move(gradients);
  at::mul_out(change, m, at::full({}, static_cast<float>(lr / corrections[0]), values.options()));
  change.div_(root);
  values.mul_(static_cast<float>(1 - lr * decay)).sub_(change);
}

void DeviceOptimizer::sgd(const at::Tensor& values,
                          at::Tensor gradients,
                          const at::Tensor& b,
                          const UpdateArguments& arguments) const {
  const auto decay = static_cast<float>(arguments.decayed ? train_.weight_decay : 0);
  const auto momentum = static_cast<float>(train_.momentum);
  const auto lr = static_cast<float>(arguments.factors.lr);
  if (arguments.corrected) {
    b.mul_(momentum).add_(values * decay);
    values.sub_(gradients.add_(b).mul_(lr));
    return;
  }
  gradients.add_(values * decay);
  b.mul_(momentum).add_(gradients);
  values.sub_(b * lr);
}

}  // namespace motley
