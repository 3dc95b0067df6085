#include "training/memory/fused_adamw.h"

#include <array>
#include <cmath>
#include <exception>

#include <ATen/ATen.h>

namespace motley {
namespace {

// So many steps that beta's power is 0, so the operation's own bias correction is 1.
constexpr double kEndlessSteps = 1e30;

template <class Part>
c10::List<at::Tensor> list_of(std::span<const TrainedArrays> parameters, const Part& part) {
  c10::List<at::Tensor> list;
  list.reserve(parameters.size());
  for (const TrainedArrays& parameter : parameters) list.push_back(part(parameter));
  return list;
}

}  // namespace

FusedAdamw::FusedAdamw(const TrainConfig& train,
                       const DeviceOperation& operation,
                       c10::Device device)
    : train_(train),
      operation_(operation),
      steps_(at::full({}, kEndlessSteps, at::TensorOptions(device).dtype(at::kFloat))) {}

std::optional<FusedAdamw> FusedAdamw::find(const TrainConfig& train, c10::Device device) {
  const OptimizerKind kind = optimizer_of(train).kind;
  if (kind != OptimizerKind::kAdamw && kind != OptimizerKind::kMuon) return std::nullopt;
  const auto operation = DeviceOperation::find("aten::_fused_adamw_", device);
  if (!operation) return std::nullopt;
  try {
    FusedAdamw fused(train, *operation, device);
    const at::Tensor zeros = at::zeros({4, 1}, fused.steps_.options());
    fused.update(std::array{TrainedArrays{zeros[0], zeros[1], {zeros[2], zeros[3]}}}, {});
    return fused;
  } catch (const std::exception&) {
    return std::nullopt;  // the operation takes other arguments, or does not support this device
  }
}

void FusedAdamw::update(std::span<const TrainedArrays> parameters,
                        const UpdateArguments& arguments) const {
  // The bias corrections are those that all ranks use. They are folded into rate and epsilon:
  //   lr / c1 m / (√v / √c2 + ε)  =  (lr √c2 / c1) m / (√v + ε √c2)
  const auto& [lr, corrections] = arguments.factors;
  const double root = std::sqrt(corrections[1]);
  const double rate = root / corrections[0];
  const double decay = train_.weight_decay * arguments.decay_factor / rate;
  const c10::List<at::Tensor> no_maxima;
  constexpr bool kAmsgrad = false;
  constexpr bool kMaximize = false;
  // The operation divides gradients by the factor with which a scaler multiplied the loss.
  const at::Tensor inverse_scale = at::full({}, 1.0 / arguments.gradient_scale, steps_.options());
  operation_({list_of(parameters, [](const auto& each) { return each.values; }),
              list_of(parameters, [](const auto& each) { return each.gradients; }),
              list_of(parameters, [](const auto& each) { return each.moments[0]; }),
              list_of(parameters, [](const auto& each) { return each.moments[1]; }), no_maxima,
              list_of(parameters, [this](const auto&) { return steps_; }), lr * rate, train_.beta1,
              train_.beta2, decay, train_.epsilon * root, kAmsgrad, kMaximize, inverse_scale});
}

}  // namespace motley
