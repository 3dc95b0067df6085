#include "training/memory/device_optimizer.h"

#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/host_floats.h"
#include "training/optimizer/muon.h"

namespace motley {
namespace {

// orthogonal(u) of muon.h by the device's products.
at::Tensor orthogonal(const at::Tensor& u) {
  const bool is_tall = u.size(0) > u.size(1);
  at::Tensor x = is_tall ? u.t().contiguous() : u;
  x = x / at::linalg_vector_norm(x).clamp_min_(kNewtonSchulzEpsilon);
  const auto [a, b, c] = kNewtonSchulz;
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor polynomial = gram * b + at::mm(gram, gram) * c;
    x = x * a + at::mm(polynomial, x);
  }
  return is_tall ? x.t().contiguous() : x;
}

// The same to the bit of the processor.
at::Tensor orthogonal_on_host(const at::Tensor& u, const InParts& in_parts) {
  at::Tensor host = u.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
  orthogonalize(floats_of(host), {u.size(0), u.size(1)}, in_parts);
  return host.to(u.device());
}

}  // namespace

DeviceOptimizer::DeviceOptimizer(const TrainConfig& train, c10::Device device, InParts in_parts)
    : train_(train),
      on_host_(make_optimizer(train)),
      in_parts_(std::move(in_parts)),
      fused_(FusedAdamw::find(train, device)) {}

std::vector<std::string> DeviceOptimizer::moment_names(bool is_matrix) const {
  return is_matrix ? on_host_->matrices()->moment_names() : on_host_->moment_names();
}

void DeviceOptimizer::update(std::span<const TrainedArrays> parameters,
                             const UpdateArguments& arguments,
                             Rounding rounding) const {
  std::vector<TrainedArrays> together;
  for (const TrainedArrays& parameter : parameters) {
    if (parameter.matrix) {
      muon(parameter, arguments, rounding);
    } else if (rounding == Rounding::kFast && fused_) {
      together.push_back(parameter);
    } else {
      update_exactly(parameter, arguments);
    }
  }
  if (!together.empty()) fused_->update(together, arguments);
}

void DeviceOptimizer::update_exactly(const TrainedArrays& parameter,
                                     const UpdateArguments& arguments) const {
  const OptimizerFacts& facts = optimizer_of(train_);
  MOTLEY_CHECK(parameter.moments.size() == facts.moments.size(), "{} moments for {}",
               parameter.moments.size(), train_.optimizer);
  at::Tensor scaled = parameter.gradients * arguments.gradient_scale;
  switch (facts.kind) {
    case OptimizerKind::kAdamw:
    case OptimizerKind::kMuon:
      return adamw(parameter.values, std::move(scaled), parameter.moments, arguments);
    case OptimizerKind::kSgd:
      return sgd(parameter.values, std::move(scaled), parameter.moments[0], arguments);
    case OptimizerKind::kLion:
      return lion(parameter.values, std::move(scaled), parameter.moments[0], arguments);
  }
  MOTLEY_CHECK(false, "train.optimizer '{}' is not computed on devices", train_.optimizer);
}

// Adds products that were computed separately: `add` with a factor may round once or twice.
void DeviceOptimizer::adamw(const at::Tensor& values,
                            at::Tensor gradients,
                            const std::vector<at::Tensor>& moments,
                            const UpdateArguments& arguments) const {
  const auto& [lr, corrections] = arguments.factors;
  const double decay = train_.weight_decay * arguments.decay_factor;
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
  const auto decay = static_cast<float>(train_.weight_decay * arguments.decay_factor);
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

void DeviceOptimizer::lion(const at::Tensor& values,
                           at::Tensor gradients,
                           const at::Tensor& m,
                           const UpdateArguments& arguments) const {
  const double rate = arguments.factors.lr;
  const double decay = train_.weight_decay * arguments.decay_factor;
  const auto rest1 = static_cast<float>(1 - train_.beta1);
  const auto rest2 = static_cast<float>(1 - train_.beta2);
  at::Tensor change = (m * static_cast<float>(train_.beta1)).add_(gradients * rest1).sign_();
  values.mul_(static_cast<float>(1 - rate * decay)).sub_(change.mul_(static_cast<float>(rate)));
  m.mul_(static_cast<float>(train_.beta2)).add_(gradients.mul_(rest2));
}

void DeviceOptimizer::muon(const TrainedArrays& parameter,
                           const UpdateArguments& arguments,
                           Rounding rounding) const {
  const Muon& muon = *on_host_->matrices();
  const auto momentum = static_cast<float>(muon.momentum());
  const at::Tensor& m = parameter.moments.at(0);
  const at::Tensor gradients = (parameter.gradients * arguments.gradient_scale)
                                   .mul_(static_cast<float>(1 - muon.momentum()));
  m.mul_(momentum).add_(gradients);
  const at::Tensor u =
      (m * momentum).add_(gradients).view({parameter.matrix->rows, parameter.matrix->columns});
  at::Tensor change =
      rounding == Rounding::kFast ? orthogonal(u) : orthogonal_on_host(u, in_parts_);
  change = change.flatten().mul_(static_cast<float>(Muon::rate(arguments, *parameter.matrix)));
  parameter.values.mul_(static_cast<float>(muon.kept(arguments))).sub_(change);
}

}  // namespace motley
